import { Upstream } from "../../../local/upstream/client.ts";

// A parent for the test that kills it: tells the upstream's process id and waits for its end.
const upstream = await Upstream.start();
process.send?.(upstream.pid);
