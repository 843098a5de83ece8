import type { Bounds } from "./bounds.ts";
import { namedBy, type Rule } from "./rules.ts";
import { FREE, withWorker, type Answer, type Hold, type Request, type Side, type State, type Worker } from "./state.ts";

/**
 * What a worker does with its one lease: the decisions of its acquirer and its heartbeater, reduced to the lease. Each
 * function gives the state behind one step of the worker on that side.
 */

interface Judged {
  readonly state: State;
  readonly broken: Rule | undefined;
}

interface Judges {
  readonly bounds: Bounds;
  readonly rules: ReadonlySet<Rule>;
}

/** How far a worker's wall clock is ahead of true time. */
export function aheadTicks(side: Side, bounds: Bounds): number {
  return side === 1 ? bounds.aheadTicks : 0;
}

/** An acquire is given up within its budget, which is less than what it would be worth. */
export function mustGiveUpFirst({ op }: Worker, { leaseTicks, marginTicks }: Bounds): boolean {
  return op?.request.kind === "acquire" && op.answer === undefined && op.sentAt <= marginTicks - leaseTicks;
}

export function acquiring(state: State, side: Side, bounds: Bounds): State {
  const request: Request = {
    kind: "acquire",
    owner: side,
    epoch: 0,
    takeable: 2 * (aheadTicks(side, bounds) - bounds.acquireSkewTicks),
    expires: newExpiry(side, bounds),
    seq: 0,
  };
  return sending(state, side, request, {});
}

export function renewing(state: State, side: Side, hold: Hold, bounds: Bounds): State {
  const seq = bounds.checkpoints ? hold.seq + 1 : 0;
  const request: Request = {
    kind: "renew",
    owner: side,
    epoch: hold.epoch,
    takeable: FREE,
    // Higher than any before: a second one within a tick by a millisecond.
    expires: newExpiry(side, bounds) + hold.sent,
    seq,
  };
  return sending(state, side, request, { hold: { ...hold, sent: hold.sent + 1, seq } });
}

/** From now on it does not act; what it sends is its end, as soon as no other request is under way. */
export function ending(state: State, side: Side, how: "releasing" | "parking", bounds: Bounds): State {
  const { hold } = state.workers[side];
  if (hold === undefined) throw new Error("there is nothing to end");
  const seq = bounds.checkpoints ? hold.seq + 1 : 0;
  return withEnd(withWorker(state, side, { hold: { ...hold, state: how, seq } }), side, bounds);
}

export function fenced(state: State, side: Side, bounds: Bounds): State {
  const { hold } = state.workers[side];
  if (hold === undefined) throw new Error("there is nothing to fence");
  return withEnd(withWorker(state, side, { hold: { ...hold, state: "releasing", fenced: true } }), side, bounds);
}

/**
 * The request was applied, and its answer sets out. Most answers are read at once, because to read them later shows
 * nothing new:
 *
 * - a refused acquire, the end of a holding, or any answer to a holding that ends: to read it later is to rest meanwhile;
 * - a lease that is held, or extended: to read it later is to make no use of it meanwhile;
 * - a loss: if its holder acted without a lease until it reads that, it did so before, too, and a rule was broken then.
 *
 * What remains is a renewal that shows the connection STOPPED: its holder goes on until it reads that.
 */
export function returned(state: State, side: Side, answer: Answer, world: Judges): Judged {
  const { op } = state.workers[side];
  if (op === undefined) throw new Error("nobody waits for this answer");
  const sent = setsOut(state, side, answer, world.bounds);
  const waits = sent.workers[side].op?.answer !== undefined;
  if (!waits || world.bounds.unreduced || (op.request.kind === "renew" && answer.kind === "held" && !answer.started)) {
    return good(sent);
  }
  return concluded(sent, side, world);
}

function setsOut(state: State, side: Side, answer: Answer, bounds: Bounds): State {
  const { op, hold } = state.workers[side];
  if (op === undefined) throw new Error("nobody waits for this answer");
  const { mistakes } = bounds;
  switch (op.request.kind) {
    case "release":
    case "park":
      return withWorker(state, side, { op: undefined, hold: undefined });
    case "acquire":
      if (answer.kind === "refused" && !mistakes.hintIsOwnership) return withWorker(state, side, { op: undefined });
      break;
    case "renew":
      if (hold === undefined || hold.state === "acting") break;
      // It only gives back. A loss is the end of that, too.
      if (answer.kind !== "held") return withWorker(state, side, { op: undefined, hold: undefined });
      return withEnd(withWorker(state, side, { op: undefined }), side, bounds);
  }
  return withWorker(state, side, { op: { ...op, answer } });
}

/** The answer is read. */
export function concluded(state: State, side: Side, { bounds, rules }: Judges): Judged {
  const { op, hold } = state.workers[side];
  if (op?.answer === undefined) throw new Error("there is no answer to read");
  const { mistakes, leaseTicks, marginTicks } = bounds;
  const { answer } = op;
  const deadline = (mistakes.deadlineFromAnswer ? 0 : op.sentAt) + leaseTicks - marginTicks;
  const free = withWorker(state, side, { op: undefined });
  if (op.request.kind === "acquire" || op.takeOver) {
    const mine =
      answer.kind === "held" ||
      (answer.kind === "older-life" && mistakes.anyExpiryIsMine) ||
      (answer.kind === "refused" && mistakes.hintIsOwnership && answer.epoch !== 0);
    if (mine) return good(begun(free, side, answer, deadline, op.sentAt === 0 ? 1 : 0, bounds));
    return good(answer.kind === "older-life" ? takingOver(free, side, answer, bounds) : free);
  }
  if (answer.kind !== "held") return lost(free, side, rules);
  if (hold === undefined) throw new Error("a renewal outlived its holding");
  if (hold.state !== "acting") return good(withEnd(free, side, bounds));
  const extended = withWorker(free, side, { hold: { ...hold, deadline: clamp(deadline) } });
  // A holder that may not act looks at nothing else: it is fenced in a moment.
  const stops = !answer.started && deadline > 0 && !mistakes.ignoresStop;
  return good(stops ? ending(extended, side, "releasing", bounds) : extended);
}

/** Nobody knows what became of the request: it is never a loss. */
export function unanswered(state: State, side: Side, { bounds, rules }: Judges): Judged {
  const { op, hold } = state.workers[side];
  if (op === undefined) throw new Error("nothing was asked");
  const { mistakes, leaseTicks, marginTicks } = bounds;
  const free = withWorker(state, side, { op: undefined });
  const renewal = op.request.kind === "renew" && !op.takeOver;
  if (renewal && mistakes.unknownIsLost) return lost(free, side, rules);
  if (renewal && mistakes.extendsUnanswered && hold?.state === "acting") {
    return good(withWorker(free, side, { hold: { ...hold, deadline: clamp(op.sentAt + leaseTicks - marginTicks) } }));
  }
  return good(withEnd(free, side, bounds));
}

function begun(free: State, side: Side, answer: Answer, deadline: number, sent: number, bounds: Bounds): State {
  const hold: Hold = {
    // Confirmed too late to be worth anything: it is undone before anybody acts.
    state: deadline > 0 ? "acting" : "releasing",
    epoch: answer.epoch,
    deadline: clamp(deadline),
    sent,
    seq: answer.seq,
    parkUntil: undefined,
    fenced: false,
  };
  return withEnd(withWorker(free, side, { hold }), side, bounds);
}

/** The item names this worker under an epoch that it does not know: only a renewal proves that it is still its own. */
function takingOver(free: State, side: Side, { epoch, expires }: Answer, bounds: Bounds): State {
  const newest = newExpiry(side, bounds);
  const beyond = expires >= newest ? expires + 1 : newest;
  const request: Request = { kind: "renew", owner: side, epoch, takeable: FREE, expires: beyond, seq: 0 };
  return sending(free, side, request, {}, true);
}

function lost(free: State, side: Side, rules: ReadonlySet<Rule>): Judged {
  const { hold } = free.workers[side];
  const wrongly = hold?.state === "acting" && namedBy(free.item, side, hold.epoch);
  return {
    state: withWorker(free, side, { hold: undefined }),
    broken: wrongly && rules.has("stops-without-reason") ? "stops-without-reason" : undefined,
  };
}

/** Sends the end of a holding that wants one, unless a request is under way. */
function withEnd(state: State, side: Side, bounds: Bounds): State {
  const { hold, op } = state.workers[side];
  if (hold === undefined || hold.state === "acting" || op !== undefined) return state;
  const park = hold.state === "parking";
  const until = hold.parkUntil ?? 2 * (aheadTicks(side, bounds) + bounds.parkTicks);
  const request: Request = {
    kind: park ? "park" : "release",
    owner: side,
    epoch: hold.epoch,
    takeable: FREE,
    expires: park ? until : FREE,
    // Past the deadline nothing is claimed any more.
    seq: bounds.checkpoints && !hold.fenced && hold.deadline > 0 ? hold.seq : 0,
  };
  const acts = bounds.mistakes.actsUntilReleased && !hold.fenced;
  const after: Hold = { ...hold, state: acts ? "acting" : hold.state, parkUntil: park ? until : undefined };
  return sending(state, side, request, { hold: after });
}

function sending(state: State, side: Side, request: Request, change: Partial<Worker>, takeOver = false): State {
  return withWorker(state, side, { ...change, op: { request, sentAt: 0, takeOver, answer: undefined } });
}

/** Now, by a worker's wall clock, and a lease more. */
function newExpiry(side: Side, bounds: Bounds): number {
  return 2 * (aheadTicks(side, bounds) + bounds.leaseTicks);
}

function clamp(deadline: number): number {
  return Math.max(-1, deadline);
}

function good(state: State): Judged {
  return { state, broken: undefined };
}
