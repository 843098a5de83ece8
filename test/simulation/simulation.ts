import { checkRecovery } from "./checker/recovery.ts";
import type { Violation } from "./checker/violations.ts";
import type { MachineClockSettings } from "./engine/machine.ts";
import { Seeded } from "./engine/seeded.ts";
import type { Tally } from "./engine/tally.ts";
import { strike } from "./scenario/faults.ts";
import { STATED, type Ranges } from "./scenario/ranges.ts";
import { CHUNK } from "./world/socket.ts";
import { Fleet, type FleetOptions } from "./world/fleet.ts";

export interface SimulationOptions extends Omit<FleetOptions, "seed"> {
  readonly seed: number;
  readonly ranges?: Ranges;
  /** Called once everything is wired and nothing has run: where tests plant faults. */
  readonly prepare?: (fleet: Fleet) => void;
}

export interface SimulationResult {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly events: number;
  readonly simulatedMs: number;
  readonly tally: Tally;
  /** From SIGTERM in good weather until everything is streaming elsewhere. */
  readonly handOverMs: number | undefined;
  /** The last lines about the connection that went wrong. */
  readonly history: (lines: number) => string[];
}

/** How often it is looked at how much the writers hold: their bounds, one read per socket, and what closing sockets read. */
const LOOK_MS = 500;

/** One run, which is the same every time for the same seed and options. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { ranges = STATED } = options;
  const seed = `${ranges.name}/${options.seed}`;
  const seeded = new Seeded(`${seed}/scenario`);
  const fleet = new Fleet({
    guardBlind: ranges.guardBlind === true,
    functionsOffsetMs: seeded.between(-ranges.maxOffsetMs, ranges.maxOffsetMs),
    indexUnitsPerSecond: seeded.pick([1000, 1000, 6]),
    ...options,
    seed,
    environment: { ...drawnEnvironment(seeded), ...options.environment },
  });
  const { scheduler, violations } = fleet;
  const onRejection = (error: unknown): void => {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    violations.report("unexpected-error", undefined, `a promise of the fleet was rejected: ${text}`);
  };
  process.on("unhandledRejection", onRejection);
  try {
    await play(fleet, seeded, ranges, options);
  } finally {
    process.off("unhandledRejection", onRejection);
  }
  const violation = violations.first;
  return {
    seed: options.seed,
    violation,
    events: scheduler.ran,
    simulatedMs: scheduler.nowMs,
    tally: fleet.tally,
    handOverMs: fleet.handOverMs,
    history: (lines) => fleet.history.lines(violation?.connectionId, lines),
  };
}

async function play(fleet: Fleet, seeded: Seeded, ranges: Ranges, options: SimulationOptions): Promise<void> {
  const { scheduler, violations } = fleet;
  const endMs = seeded.between(...ranges.faultsMs);
  const wanted = seeded.int(...ranges.tasks);
  populate(fleet, seeded, ranges);
  // Enough for all connections while one of them is being replaced.
  const tasks = Math.max(wanted, Math.ceil(fleet.upstreams.length / fleet.settings.maxConnections) + 1);
  options.prepare?.(fleet);
  keepRunning(fleet, seeded, ranges, tasks);
  for (let i = 0; i < tasks; i++) fleet.addTask(drawnClock(seeded, ranges));
  watchMemory(fleet);

  const failed = (): boolean => violations.first !== undefined;
  const faults = seeded.fork("faults");
  const next = (): void => {
    scheduler.in(faults.wait(ranges.meanFaultMs), () => {
      if (scheduler.nowMs >= endMs) return;
      strike(faults.weighted(ranges.faults), { fleet, seeded: faults, endMs });
      next();
    });
  };
  if (Object.keys(ranges.faults).length > 0) next();
  if (await scheduler.runUntil(endMs, failed)) return;
  fleet.weather.clear();
  fleet.store.db.indexLagMs = 0;
  if (ranges.withoutRecovery !== true) await checkRecovery(fleet, seeded.fork("calm"));
}

function populate(fleet: Fleet, seeded: Seeded, ranges: Ranges): void {
  const count = seeded.int(...ranges.connections);
  for (let i = 1; i <= count; i++) {
    const positioned = seeded.chance(0.6);
    const connectionId = `c${i}`;
    fleet.addUpstream({
      connectionId,
      positioned,
      firstSeq: positioned ? seeded.pick([0n, 1_700_000_000_000_000n, 9_007_199_254_740_985n]) : 0n,
      inclusive: seeded.chance(0.5),
      meanIntervalMs: seeded.pick([300, 800, 2500]),
    });
    fleet.scheduler.in(seeded.between(0, 5000), () => fleet.start(connectionId));
  }
}

function drawnClock(seeded: Seeded, ranges: Ranges): MachineClockSettings {
  const { extremeOffsets, maxOffsetMs } = ranges;
  return {
    offsetMs: Math.round(
      extremeOffsets === true ? seeded.pick([-1, 1]) * maxOffsetMs : seeded.between(-maxOffsetMs, maxOffsetMs),
    ),
    rate: 1 + seeded.between(-ranges.maxDrift, ranges.maxDrift),
    monotonicMs: seeded.between(0, 1e9),
  };
}

function drawnEnvironment(seeded: Seeded): Record<string, string> {
  return {
    ...seeded.pick([{}, {}, { WS_FLEET_MAX_CONNECTIONS: "2", WS_FLEET_TARGET_CONNECTIONS: "1" }]),
    WS_FLEET_WRITER_MAX_ITEMS: seeded.pick(["100", "100", "50000"]),
    WS_FLEET_WRITER_CONCURRENCY: seeded.pick(["1", "2", "8"]),
    WS_FLEET_MAX_CONCURRENT_LEASE_OPS: seeded.pick(["1", "2", "64", "64"]),
    WS_FLEET_MAX_CONCURRENT_DIALS: seeded.pick(["1", "2", "50"]),
    WS_FLEET_DRAIN_BUDGET_MS: seeded.pick(["5000", "30000", "60000"]),
  };
}

/** The orchestrator: another task for each one that is over. */
function keepRunning(fleet: Fleet, seeded: Seeded, ranges: Ranges, wanted: number): void {
  const clocks = seeded.fork("replacements");
  fleet.onTaskStopped = () => {
    fleet.scheduler.in(clocks.between(500, 10_000), () => {
      const running = fleet.tasks.filter((task) => !task.stopped && !task.draining).length;
      if (running < wanted) fleet.addTask(drawnClock(clocks, ranges));
    });
  };
}

function watchMemory(fleet: Fleet): void {
  const { scheduler, settings, violations } = fleet;
  scheduler.in(LOOK_MS, () => {
    for (const { core, task, alive } of fleet.tasks) {
      const pending = alive ? (core?.health()["pendingMessages"] as number | undefined) : undefined;
      const sockets = fleet.sockets.filter((socket) => socket.task === task);
      const slack = sockets.reduce((sum, { live, readWhileClosing }) => sum + (live ? CHUNK : 0) + readWhileClosing, 0);
      if (pending !== undefined && pending > settings.writerMaxItems + slack) {
        violations.report("unbounded-memory", undefined, `${task} holds ${pending} messages in memory`);
      }
    }
    watchMemory(fleet);
  });
}
