import { SystemClock } from "../../shared/clock.ts";
import { buildCorpus } from "./corpus.ts";
import type { ChildMessage, Request, SocketEvent } from "./protocol.ts";
import { writeRecord } from "./record.ts";
import { UpstreamServer } from "./server.ts";
import { loadSpeeches } from "./speeches.ts";

// The upstream as a process of its own, steered over IPC: see protocol.ts for the messages and client.ts for the parent.

const EVENT_BATCH_MS = 50;

if (process.send === undefined) throw new Error("the upstream is started by its parent, with an IPC channel");

const send = (message: ChildMessage): void => {
  if (process.connected) process.send?.(message);
};

let events: SocketEvent[] = [];
setInterval(() => {
  if (events.length === 0) return;
  send({ type: "events", events });
  events = [];
}, EVENT_BATCH_MS);

const speeches = loadSpeeches();
const server = new UpstreamServer({ clock: new SystemClock(), onEvent: (event) => void events.push(event) });

async function answer(request: Request): Promise<object> {
  switch (request.call) {
    case "configure": {
      const { config } = request.params;
      const corpus = buildCorpus(speeches, config);
      server.configure(config, corpus);
      return { segmentsPerConnection: corpus.transcripts[0]?.length ?? 0 };
    }
    case "status":
      return server.status();
    case "report": {
      if (server.config === undefined) throw new Error("configure the upstream first");
      const { path } = request.params;
      await writeRecord(path, server.config, server.records());
      return { path };
    }
    case "close-all":
      return { closed: await server.closeAll(request.params.code) };
    case "refuse":
      server.refuse(request.params.ms, request.params.status);
      return {};
    case "stall":
      server.stall(request.params.ms);
      return {};
    case "terminate":
      return { terminated: server.terminate(request.params.connectionIds) };
  }
}

process.on("message", (message: Request) => {
  answer(message).then(
    (result) => send({ type: "result", id: message.id, result }),
    (error: unknown) =>
      send({ type: "failure", id: message.id, error: error instanceof Error ? error.message : String(error) }),
  );
});
// Ctrl-C reaches the whole process group; the parent decides when the upstream ends.
process.on("SIGINT", () => undefined);
process.on("disconnect", () => process.exit(0));

send({ type: "ready", port: await server.listen() });
