import { encodeHint } from "../../../shared/hints/hint.ts";
import { TRUE_EPOCH_MS } from "../engine/machine.ts";
import type { Fleet } from "../world/fleet.ts";
import type { SimTask } from "../world/task.ts";
import type { SimUpstream } from "../world/upstream.ts";
import { CLEAR_QUEUE, CLEAR_STORE, CLEAR_STREAM, type StoreClimate } from "../world/weather.ts";
import type { Trap } from "../engine/process.ts";
import type { Seeded } from "../engine/seeded.ts";

/** One kind of thing that goes wrong. */
export type FaultName =
  | "crash"
  | "crash-at-step"
  | "host-lost"
  | "freeze"
  | "freeze-at-step"
  | "freeze-machine"
  | "drain"
  | "drain-at-step"
  | "store-weather"
  | "store-outage"
  | "task-weather"
  | "task-cut-off"
  | "credentials"
  | "index-lag"
  | "queue-weather"
  | "queue-down"
  | "stream-weather"
  | "stream-off"
  | "functions-off"
  | "upstream-closes"
  | "upstream-refuses"
  | "upstream-silent"
  | "upstream-stalls"
  | "half-open"
  | "flood"
  | "wall-step"
  | "stray-hints"
  | "stop-start"
  | "recreate"
  | "suspend"
  | "new-settings";

export interface FaultContext {
  readonly fleet: Fleet;
  readonly seeded: Seeded;
  /** When all of it ends; nothing may last longer. */
  readonly endMs: number;
}

/** A pause that matters: around the deadline, the expiry, and now and then far beyond. */
function pauseMs({ fleet, seeded }: FaultContext): number {
  const { leaseMs, marginMs } = fleet.settings;
  return seeded.weighted({ short: 3, deadline: 4, expiry: 4, long: 1 }) === "short"
    ? seeded.between(200, 5000)
    : seeded.pick([
        seeded.between(leaseMs - marginMs - 4000, leaseMs - marginMs + 1000),
        seeded.between(leaseMs - 2000, leaseMs + 4000),
        seeded.between(leaseMs, 2 * leaseMs + 10_000),
      ]);
}

function storm(seeded: Seeded): StoreClimate {
  const some = (most: number): number => (seeded.chance(0.5) ? seeded.between(0, most) : 0);
  return {
    cut: false,
    lostRequest: some(0.4),
    lostAnswer: some(0.6),
    latencyMs: [2, seeded.pick([50, 400, 1500, 4000])],
    late: some(0.3),
    lateMs: [1000, seeded.pick([4000, 15_000, 40_000])],
    throttle: some(0.8),
    serverError: some(0.3),
    applyThenError: some(0.4),
    credentials: 0,
    unprocessed: some(0.6),
  };
}

/** Runs until a drawn time, or the end of all faults. */
function lasting(context: FaultContext, lowMs: number, highMs: number, begin: () => void, end: () => void): void {
  const { fleet, seeded, endMs } = context;
  begin();
  fleet.scheduler.at(Math.min(endMs, fleet.scheduler.nowMs + seeded.between(lowMs, highMs)), end);
}

function frozen(context: FaultContext, task: SimTask, machine: boolean): void {
  const processes = machine ? [task.worker, task.supervisor] : [task.worker];
  lasting(
    { ...context },
    ...span(pauseMs(context)),
    () => {
      context.fleet.history.add(task.task, undefined, machine ? "machine freezes" : "worker freezes");
      for (const process of processes) process.freeze();
      for (const socket of context.fleet.socketsOf(task.task)) socket.faulty = true;
    },
    () => {
      context.fleet.history.add(task.task, undefined, "thaws");
      task.machine.resume();
      for (const process of processes) process.thaw();
    },
  );
}

const span = (ms: number): [number, number] => [ms, ms];

type WithTask = (context: FaultContext, task: SimTask) => void;
type WithUpstream = (context: FaultContext, upstream: SimUpstream) => void;

/** Lets a fault hit the task's worker at its `left`-th step from now, before or after the step has its effect. */
export function trap(context: FaultContext, task: SimTask, fault: FaultName, left: number, when: Trap["when"]): void {
  const { fleet, endMs } = context;
  fleet.history.add(task.task, undefined, `trap set: ${fault} ${when} step ${left}`);
  task.worker.setTrap({
    left,
    when,
    spring: () => {
      if (fleet.scheduler.nowMs >= endMs) return;
      fleet.tally.add(`sprung: ${fault}`);
      ON_TASKS[fault]?.(context, task);
    },
  });
}

const atStep =
  (fault: FaultName): WithTask =>
  (context, task) =>
    trap(context, task, fault, context.seeded.int(1, 60), context.seeded.pick(["before", "after"]));

const crash: WithTask = ({ fleet }, task) => {
  fleet.history.add(task.task, undefined, "worker crashes");
  task.crash();
};
const freeze: WithTask = (context, task) => frozen(context, task, false);
const drain: WithTask = (_context, task) => task.sigterm();

const ON_TASKS: Partial<Record<FaultName, WithTask>> = {
  crash,
  "crash-at-step": atStep("crash"),
  "host-lost": (_context, task) => task.loseHost(),
  freeze,
  "freeze-at-step": atStep("freeze"),
  "freeze-machine": (context, task) => frozen(context, task, true),
  drain,
  "drain-at-step": atStep("drain"),
  "task-weather": (context, task) => {
    const climate = storm(context.seeded);
    lasting(
      context,
      2000,
      40_000,
      () => {
        context.fleet.history.add(task.task, undefined, "bad weather to the store");
        context.fleet.weather.setLocal(task.task, climate);
      },
      () => context.fleet.weather.setLocal(task.task, undefined),
    );
  },
  "task-cut-off": (context, task) =>
    lasting(
      context,
      2000,
      40_000,
      () => {
        context.fleet.history.add(task.task, undefined, "cut off from the store");
        context.fleet.weather.setLocal(task.task, { ...CLEAR_STORE, cut: true });
      },
      () => {
        context.fleet.history.add(task.task, undefined, "reaches the store again");
        context.fleet.weather.setLocal(task.task, undefined);
      },
    ),
  credentials: (context, task) =>
    lasting(
      context,
      1000,
      25_000,
      () => {
        context.fleet.history.add(task.task, undefined, "credentials are rejected");
        context.fleet.weather.setLocal(task.task, { ...CLEAR_STORE, credentials: 1 });
      },
      () => context.fleet.weather.setLocal(task.task, undefined),
    ),
  suspend: (context, task) => {
    frozen(context, task, true);
    task.machine.suspend();
  },
  "wall-step": ({ fleet, seeded }, task) => {
    const ms = Math.round(seeded.pick([-1, 1]) * seeded.pick([500, 5000, 30_000, 3_600_000]) * seeded.between(0.5, 1));
    fleet.history.add(task.task, undefined, `wall clock steps by ${ms} ms`);
    task.machine.stepWall(ms);
    // Put right again: a restarted process must find a clock within the skew.
    fleet.scheduler.in(seeded.between(1000, 30_000), () => task.machine.stepWall(-ms));
  },
};

const ON_UPSTREAMS: Partial<Record<FaultName, WithUpstream>> = {
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

/** Things around the fleet, each with its way back. */
const ON_SURROUNDINGS: Partial<Record<FaultName, (context: FaultContext) => [begin: () => void, end: () => void]>> = {
  "store-weather": ({ fleet: { weather }, seeded }) => {
    const climate = storm(seeded);
    return [() => (weather.store = climate), () => (weather.store = CLEAR_STORE)];
  },
  "store-outage": ({ fleet: { weather } }) => [
    () => (weather.store = { ...CLEAR_STORE, serverError: 1 }),
    () => (weather.store = CLEAR_STORE),
  ],
  "index-lag": ({ fleet: { store } }) => [
    () => (store.db.indexLagMs = (random) => 15_000 * random() ** 2),
    () => (store.db.indexLagMs = 0),
  ],
  "queue-weather": ({ fleet: { weather }, seeded }) => [
    () =>
      (weather.queue = {
        ...CLEAR_QUEUE,
        lost: seeded.pick([0, 0.3, 1]),
        duplicated: seeded.pick([0, 0.5]),
        delayed: seeded.pick([0, 0.5]),
        failing: seeded.pick([0, 0.2]),
      }),
    () => (weather.queue = CLEAR_QUEUE),
  ],
  "queue-down": ({ fleet: { weather } }) => [
    () => (weather.queue = { ...CLEAR_QUEUE, down: true }),
    () => (weather.queue = CLEAR_QUEUE),
  ],
  "stream-weather": ({ fleet: { weather } }) => [
    () => (weather.stream = { off: false, repeated: 0.5, latencyMs: [500, 25_000] }),
    () => (weather.stream = CLEAR_STREAM),
  ],
  "stream-off": ({ fleet: { weather } }) => [
    () => (weather.stream = { ...CLEAR_STREAM, off: true }),
    () => (weather.stream = CLEAR_STREAM),
  ],
  "functions-off": ({ fleet: { weather } }) => [
    () => (weather.functionsOff = true),
    () => (weather.functionsOff = false),
  ],
};

/** Lets it happen to whatever is drawn; nothing happens when nothing of that kind is there. */
export function strike(name: FaultName, context: FaultContext): void {
  const { fleet, seeded } = context;
  const onTask = ON_TASKS[name];
  const onUpstream = ON_UPSTREAMS[name];
  const surroundings = ON_SURROUNDINGS[name]?.(context);
  fleet.tally.add(`fault: ${name}`);
  if (onTask !== undefined) {
    // A deployment does not ask whether a worker hangs.
    const mayBeFrozen = name === "drain" || name === "crash" || name === "host-lost" || name === "wall-step";
    const tasks = fleet.tasks.filter((task) => task.alive && (mayBeFrozen || !task.worker.frozen));
    if (tasks.length > 0) onTask(context, seeded.pick(tasks));
  } else if (onUpstream !== undefined) {
    onUpstream(context, seeded.pick(fleet.upstreams));
  } else if (surroundings !== undefined) {
    const [begin, end] = surroundings;
    lasting(
      context,
      2000,
      45_000,
      () => {
        fleet.history.add("world", undefined, name);
        begin();
      },
      () => {
        fleet.history.add("world", undefined, `end of ${name}`);
        end();
      },
    );
  }
}
