import { encodeHint } from "../../../shared/hints/hint.ts";
import { TRUE_EPOCH_MS } from "../engine/machine.ts";
import type { Seeded } from "../engine/seeded.ts";
import type { SimUpstream } from "../world/upstream.ts";
import { lasting, type FaultContext, type FaultName } from "./fault.ts";

type WithUpstream = (context: FaultContext, upstream: SimUpstream) => void;

/** What befalls one connection: its upstream, its producer, its hints. */
export const ON_UPSTREAMS: Partial<Record<FaultName, WithUpstream>> = {
  "upstream-closes": ({ seeded }, upstream) => {
    const code = seeded.pick([1000, 1001, 1006, 1011, 1012, 1013, 1008, 4004]);
    upstream.trouble(`closes with ${code}`);
    for (const link of [...upstream.links]) {
      if (code === 1006) link.cutDown();
      else link.closeByServer(code);
    }
  },
  "upstream-refuses": (context, upstream) => {
    const end = context.seeded.pick([
      { httpStatus: 503, retryAfterMs: 3000 },
      { httpStatus: 429 },
      { httpStatus: 500 },
      { httpStatus: 401 },
      { code: 1006, error: "ECONNREFUSED" },
    ]);
    upset(context, upstream, "refuses dials", end, true);
  },
  "upstream-silent": (context, upstream) => upset(context, upstream, "does not answer dials", "silent", true),
  "upstream-stalls": (context, upstream) => {
    const links = [...upstream.links];
    lasting(
      context,
      5000,
      40_000,
      () => {
        upstream.trouble("stalls");
        for (const link of links) link.stall();
      },
      () => {
        for (const link of links) link.wake();
      },
    );
  },
  "half-open": (_context, upstream) => {
    upstream.trouble("its sockets become half-open");
    for (const link of [...upstream.links]) link.cut();
  },
  flood: ({ seeded }, upstream) => upstream.flood(seeded.int(20, 400)),
  "stray-hints": ({ fleet, seeded, endMs }, { connectionId }) => {
    fleet.history.add("world", connectionId, "stray hints");
    const untilMs = Math.min(endMs, fleet.scheduler.nowMs + seeded.between(1000, 60_000));
    const next = (): void => {
      if (fleet.scheduler.nowMs >= untilMs) return;
      fleet.queue.put(strayHint(seeded, connectionId));
      fleet.scheduler.in(seeded.wait(400), next);
    };
    next();
  },
  "stop-start": (context, { connectionId }) =>
    lasting(
      context,
      10,
      20_000,
      () => context.fleet.stop(connectionId),
      () => context.fleet.start(connectionId),
    ),
  recreate: ({ fleet }, { connectionId }) => fleet.recreate(connectionId),
  "new-settings": ({ fleet, seeded }, { connectionId }) => fleet.start(connectionId, seeded.int(1, 9)),
};

/** Mostly well-formed: of connections that have an owner, or never existed; now and then nothing that can be read. */
function strayHint(seeded: Seeded, connectionId: string): string {
  const hint = (id: string): string =>
    encodeHint({ connectionId: id, reason: "orphaned", hintedAtMs: TRUE_EPOCH_MS + seeded.int(0, 1e6) });
  switch (seeded.weighted({ live: 12, gone: 1, malformed: 1 })) {
    case "live":
      return hint(connectionId);
    case "gone":
      return hint("nobody-knows-it");
    case "malformed":
      return seeded.pick(["", "{", '{"v":2}', hint(connectionId).replace("1", "0")]);
  }
}

function upset(
  context: FaultContext,
  upstream: SimUpstream,
  text: string,
  answer: ReturnType<SimUpstream["dialAnswer"]>,
  closing: boolean,
): void {
  lasting(
    context,
    1000,
    30_000,
    () => {
      upstream.trouble(text);
      upstream.dialAnswer = () => answer;
      if (closing) for (const link of [...upstream.links]) link.closeByServer(1001);
    },
    () => {
      upstream.trouble("takes dials again");
      upstream.dialAnswer = () => "accept";
    },
  );
}
