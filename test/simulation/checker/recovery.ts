import { CONNECTION } from "../../../shared/connection/attributes.ts";
import { TRUE_EPOCH_MS } from "../engine/machine.ts";
import type { Seeded } from "../engine/seeded.ts";
import type { Fleet } from "../world/fleet.ts";
import type { SimUpstream } from "../world/upstream.ts";

/** Until a half-open socket is noticed (idle timeout and a ping interval), or a back-off is over. */
const RECONNECT_MS = 20_000;
/** From the hint to the open socket. */
const HINT_TO_OPEN_MS = 3000;
/** Until the orchestrator has started another task and it has asked the store for the time. */
const REPLACEMENT_MS = 12_000;

/** What must hold again once faults have ended. */
export async function checkRecovery(fleet: Fleet, seeded: Seeded): Promise<void> {
  const { scheduler, settings, violations } = fleet;
  const failed = (): boolean => violations.first !== undefined;
  fleet.history.add("world", undefined, "--- all faults have ended ---");
  // What was sent in bad weather may arrive long after it, and an acquire among it takes a lease that nobody knows of.
  await quiet(fleet, Math.max(0, fleet.store.lastArrivalMs - scheduler.nowMs));
  await settled(fleet, boundMs(fleet));
  // Open polls of dead tasks are over: each may take a hint with it.
  await quiet(fleet, settings.longPollMs);
  if (!failed()) await drainOne(fleet, seeded);
  if (!failed()) await stopOne(fleet, seeded);
  for (const upstream of fleet.upstreams) upstream.stopProducing();
  // Everything that was sent has arrived and its rows are written; checkpoints follow within a heartbeat.
  await quiet(fleet, 2 * settings.heartbeatMs + 5000);
  if (!failed()) for (const upstream of fleet.upstreams) checkStored(fleet, upstream);
}

/** The longest way back: a park, or a drain that is under way; expiry, skews, a sweep, its hint, a socket. */
function boundMs({ upstreams, tasks, scheduler, settings }: Fleet): number {
  const { connectGiveUpMs, drainBudgetMs, hintVisibilityMs, leaseMs, maxParkMs, skewMs, sweepMs } = settings;
  const troubled = upstreams.some(({ troubledAtMs }) => scheduler.nowMs - troubledAtMs < 2 * connectGiveUpMs);
  const draining = tasks.some((task) => task.alive && task.draining);
  const wayMs = leaseMs + 3 * skewMs + sweepMs + hintVisibilityMs + HINT_TO_OPEN_MS;
  const restMs = Math.max(troubled ? maxParkMs + connectGiveUpMs : 0, draining ? drainBudgetMs : 0);
  return wayMs + restMs + RECONNECT_MS + REPLACEMENT_MS;
}

/** SIGTERM in good weather: the stream's hint, which at worst went to the open poll of the task that left. */
async function drainOne(fleet: Fleet, seeded: Seeded): Promise<void> {
  const running = fleet.tasks.filter((task) => task.alive && !task.draining);
  if (running.length < 2) return;
  const startedMs = fleet.scheduler.nowMs;
  const { hintVisibilityMs, maxConnections, sweepMs } = fleet.settings;
  const scarce = (running.length - 1) * maxConnections < fleet.upstreams.length;
  seeded.pick(running).sigterm();
  const handOverMs = HINT_TO_OPEN_MS + hintVisibilityMs;
  await settled(fleet, handOverMs + (scarce ? REPLACEMENT_MS + hintVisibilityMs + sweepMs : 0));
  fleet.handOverMs = fleet.scheduler.nowMs - startedMs;
}

async function stopOne(fleet: Fleet, seeded: Seeded): Promise<void> {
  const upstream = seeded.pick(fleet.upstreams);
  const { heartbeatMs, heartbeatJitter, closeGraceMs, hintVisibilityMs } = fleet.settings;
  fleet.stop(upstream.connectionId);
  // One longest heartbeat, a second, and the close itself.
  if (!(await quiet(fleet, heartbeatMs * (1 + heartbeatJitter) + 1000 + closeGraceMs))) return;
  if (liveSockets(fleet, upstream).length > 0) {
    fleet.violations.report("socket-of-stopped", upstream.connectionId, "a socket is open long after STOP");
    return;
  }
  fleet.start(upstream.connectionId);
  await settled(fleet, HINT_TO_OPEN_MS + hintVisibilityMs);
}

/** Waits until every connection is as its producer wants it. */
async function settled(fleet: Fleet, boundMs: number): Promise<boolean> {
  const { scheduler, violations } = fleet;
  const failed = (): boolean => violations.first !== undefined;
  const dark = (): SimUpstream[] => fleet.upstreams.filter((upstream) => !asWanted(fleet, upstream));
  await scheduler.runUntil(scheduler.nowMs + boundMs, () => failed() || (fleet.produced && dark().length === 0));
  for (const { connectionId } of dark().slice(0, 1)) {
    violations.report("not-streaming", connectionId, `not as its producer wants it after ${boundMs} ms without faults`);
  }
  return !failed();
}

async function quiet(fleet: Fleet, ms: number): Promise<boolean> {
  const { scheduler, violations } = fleet;
  return !(await scheduler.runUntil(scheduler.nowMs + ms, () => violations.first !== undefined));
}

function asWanted(fleet: Fleet, upstream: SimUpstream): boolean {
  const id = upstream.connectionId;
  const item = fleet.item(id);
  const owner = item?.[CONNECTION.owner]?.S;
  if (item?.[CONNECTION.desiredState]?.S !== "STARTED") {
    // A lease that nobody keeps has to expire first: a START would have to wait for it.
    const left = Number(item?.[CONNECTION.expiresAtMs]?.N ?? 0) - TRUE_EPOCH_MS - fleet.scheduler.nowMs;
    return liveSockets(fleet, upstream).length === 0 && (owner === undefined || left < -2 * fleet.settings.skewMs);
  }
  return liveSockets(fleet, upstream).some(
    (socket) => socket.open && socket.task === owner && !fleet.tasks.some((t) => t.task === owner && t.draining),
  );
}

function liveSockets(fleet: Fleet, upstream: SimUpstream) {
  return fleet.sockets.filter((socket) => socket.connectionId === upstream.connectionId && socket.live);
}

function checkStored(fleet: Fleet, upstream: SimUpstream): void {
  if (upstream.positioned) checkReplayed(fleet, upstream);
  else checkLive(fleet, upstream);
}

function checkReplayed(fleet: Fleet, upstream: SimUpstream): void {
  const rows = fleet.stored.rowsOf(upstream.connectionId);
  const missing = upstream.sent.filter((message) => rows.get(message.seq) !== message.payload);
  const [first] = missing;
  if (first !== undefined) {
    const text = `${missing.length} of ${upstream.sent.length} messages are not stored, the first is ${first.seq}`;
    fleet.violations.report("stream-differs", upstream.connectionId, text);
  }
  if (rows.size > upstream.sent.length) {
    fleet.violations.report("stream-differs", upstream.connectionId, "more rows than messages");
  }
}

function checkLive(fleet: Fleet, upstream: SimUpstream): void {
  const rows = fleet.stored.rowsOf(upstream.connectionId);
  const ordered = [...rows.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, payload]) => payload);
  let before = -1n;
  for (const payload of ordered) {
    const message = upstream.find(payload);
    if (message === undefined) continue; // reported when it was written
    if (message.seq <= before) {
      fleet.violations.report("stream-differs", upstream.connectionId, `message ${message.seq} out of order or twice`);
      return;
    }
    before = message.seq;
  }
  const stored = new Set(ordered);
  for (const message of upstream.sent) {
    if (stored.has(message.payload)) continue;
    // Kept if whoever received it, acting, lived on or ended properly; or if nothing beyond the protocol touched its socket.
    const keeper = message.receipts.find(({ task, epoch }) => epoch !== undefined && endedProperly(fleet, task));
    const intact = message.sentOn.find(
      (socket) => !socket.faulty && !message.receipts.some(({ task }) => task === socket.task),
    );
    if (keeper === undefined && intact === undefined) continue;
    const text = `${message.payload} is not stored; ${keeper?.task ?? intact?.task ?? "?"} had it without a fault`;
    fleet.violations.report("message-lost", upstream.connectionId, text);
    return;
  }
}

/** Alive, or drained completely. */
function endedProperly(fleet: Fleet, name: string): boolean {
  const task = fleet.tasks.find((candidate) => candidate.task === name);
  return task !== undefined && (task.alive || task.diedAtMs === Infinity);
}
