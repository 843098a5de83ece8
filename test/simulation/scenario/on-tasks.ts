import type { Trap } from "../engine/process.ts";
import type { SimTask } from "../world/task.ts";
import { CLEAR_STORE } from "../world/weather.ts";
import { lasting, type FaultContext, type FaultName } from "./fault.ts";
import { storm } from "./on-surroundings.ts";

type WithTask = (context: FaultContext, task: SimTask) => void;

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

/** What befalls one task. */
export const ON_TASKS: Partial<Record<FaultName, WithTask>> = {
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
