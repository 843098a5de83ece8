import { SystemClock } from "../../../shared/clock.ts";
import { seededRandom } from "../../run/seeded-random.ts";
import { childInput, endWithParent, report } from "../../stack/child-side.ts";
import { Fault } from "./fault.ts";
import type { ProxiesInput, ProxyAnswer, ProxyRequest } from "./protocol.ts";
import { FaultProxy } from "./proxy.ts";

/** Child process: the network. Whatever else the runner is busy with must not slow it down. */

const { proxies: wanted, seed } = childInput() as ProxiesInput;
const clock = new SystemClock();
const random = seededRandom(seed);
const proxies = await Promise.all(wanted.map((options) => FaultProxy.start({ ...options, clock, random })));
const on = new Map<number, { readonly fault: Fault; readonly at: readonly FaultProxy[] }>();

endWithParent(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
});
process.on("message", (request: ProxyRequest) => {
  let reply: ProxyAnswer;
  try {
    reply = { call: request.call, result: answer(request) };
  } catch (error) {
    reply = { call: request.call, error: error instanceof Error ? error.message : String(error) };
  }
  if (process.connected) process.send?.(reply);
});
report({ ready: { ports: proxies.map(({ port }) => port) } });

function answer(request: ProxyRequest): object {
  switch (request.name) {
    case "begin": {
      const { id, effect, share, proxies: places } = request.params;
      const fault = new Fault(effect, share, id);
      const at = places.map(proxyAt);
      on.set(id, { fault, at });
      for (const proxy of at) proxy.begin(fault);
      return {};
    }
    case "end": {
      const known = on.get(request.params.id);
      if (known === undefined) throw new Error(`fault ${request.params.id} is not on`);
      on.delete(request.params.id);
      for (const proxy of known.at) proxy.end(known.fault);
      const { connections, bytes } = known.fault;
      return { connections, bytes };
    }
    case "totals":
      return { totals: proxies.map(({ totals }) => totals) };
    case "records":
      return { records: proxyAt(request.params.proxy).records };
  }
}

function proxyAt(place: number): FaultProxy {
  const proxy = proxies[place];
  if (proxy === undefined) throw new RangeError(`proxy must be below ${proxies.length}, got ${place}`);
  return proxy;
}
