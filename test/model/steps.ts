import type { Bounds } from "./bounds.ts";
import { judgeWrite, type Rule } from "./rules.ts";
import { FIRST_DEAD_NAME, passTick, withWorker, type Item, type Request, type Side, type State } from "./state.ts";
import type { Applied, ModelStore, Write } from "./store.ts";
import { nameOf, said } from "./text.ts";
import * as worker from "./worker.ts";

/** One thing that may happen next. */
export interface Step {
  readonly label: () => string;
  readonly next: State;
  /** True for what happens when nothing fails any more: see {@link steps}. */
  readonly calm: boolean;
  readonly tick: boolean;
  readonly broken: Rule | undefined;
}

export interface World {
  readonly bounds: Bounds;
  readonly store: ModelStore;
  readonly rules: ReadonlySet<Rule>;
}

/**
 * Everything that may happen in a state. Any worker may stall between any two of its steps, any request may wait, and
 * time may pass over all of that.
 *
 * Calm steps are those of a world without further faults: requests arrive and are answered, deadlines are noticed,
 * leases are renewed, ends are carried out, and a worker looks at what its own search for orphans shows. Calm time
 * passes only when nothing else is left to do.
 *
 * What need not be told apart:
 *
 * - A write that carries no time of its own (START, STOP, the release of a dead task's lease) is applied at once: to send
 *   it now and apply it later is to do it later. The same holds for a delete, whose cut-off only ever excludes more the
 *   older it is.
 * - Most answers are read at once, see `returned`; to lose them is a step of its own.
 * - A release or park is sent as soon as it is wanted and no other request of the worker is under way, and again and
 *   again: to send it later is to have it arrive later.
 */
export function steps(state: State, world: World): Step[] {
  return new Steps(state, world).all();
}

interface More {
  readonly calm?: boolean;
  readonly tick?: boolean;
  readonly broken?: Rule | undefined;
}

class Steps {
  readonly #state: State;
  readonly #bounds: Bounds;
  readonly #world: World;
  readonly #found: Step[] = [];
  #calm = 0;

  constructor(state: State, world: World) {
    this.#state = state;
    this.#bounds = world.bounds;
    this.#world = world;
  }

  all(): Step[] {
    for (const side of [0, 1] as const) {
      this.#ofOperation(side);
      this.#ofHolding(side);
      this.#acquire(side);
      this.#crash(side);
    }
    this.#ofLateRequests();
    this.#ofOthers();
    this.#passTime();
    return this.#found;
  }

  #add(label: () => string, next: State, { calm = false, tick = false, broken }: More = {}): void {
    if (calm) this.#calm++;
    this.#found.push({ label, next, calm, tick, broken });
  }

  #passTime(): void {
    if (this.#state.workers.some((one) => worker.mustGiveUpFirst(one, this.#bounds))) return;
    this.#add(() => "a tick passes", passTick(this.#state), { calm: this.#calm === 0, tick: true });
  }

  // What becomes of the request that a worker waits for.

  #ofOperation(side: Side): void {
    const { op } = this.#state.workers[side];
    if (op === undefined) return;
    if (op.answer !== undefined) {
      this.#ofAnswer(side, op.answer.kind);
      return;
    }
    const { request } = op;
    const me = nameOf(side);
    this.#apply(request, (applied, broken) => {
      const next = worker.returned(this.#with(applied), side, applied.answer, this.#world);
      this.#add(() => `${me}: its ${said(request)} reaches the store: ${applied.answer.kind}`, next.state, {
        calm: true,
        broken: broken ?? next.broken,
      });
      if (!applied.changed) return;
      this.#add(() => `${me}: its ${said(request)} is applied, and the answer lost`, this.#with(applied), { broken });
    });
    this.#notApplied(side, request);
  }

  #notApplied(side: Side, request: Request): void {
    const me = nameOf(side);
    const givenUp = worker.unanswered(this.#state, side, this.#world);
    // An end that is tried again as it was has not changed anything.
    const same = givenUp.state.workers[side].op?.request;
    const again = same !== undefined && same.kind === request.kind && same.seq === request.seq;
    if (!again) {
      this.#add(() => `${me}: its ${said(request)} never arrives; given up`, givenUp.state, { broken: givenUp.broken });
    }
    if (this.#state.late.length >= this.#bounds.lateRequests) return;
    const resent = withLate(this.#state, request);
    this.#add(() => `${me}: sends its ${said(request)} again while the first one is on its way`, resent);
    if (again) return;
    const late = withLate(givenUp.state, request);
    this.#add(() => `${me}: gives its ${said(request)} up while it is on its way`, late, { broken: givenUp.broken });
  }

  #ofAnswer(side: Side, kind: string): void {
    const me = nameOf(side);
    const read = worker.concluded(this.#state, side, this.#world);
    this.#add(() => `${me}: the answer arrives: ${kind}`, read.state, { calm: true, broken: read.broken });
    const { op } = this.#state.workers[side];
    const resent = withWorker(this.#state, side, { op: op && { ...op, answer: undefined } });
    this.#add(() => `${me}: the answer is lost, the same request is sent again`, resent);
    const givenUp = worker.unanswered(this.#state, side, this.#world);
    this.#add(() => `${me}: the answer is lost, given up`, givenUp.state, { broken: givenUp.broken });
  }

  // What a worker does by itself.

  #ofHolding(side: Side): void {
    const { hold, op } = this.#state.workers[side];
    if (hold?.state !== "acting") return;
    const me = nameOf(side);
    if (hold.deadline <= 0) {
      this.#add(() => `${me}: fences itself`, worker.fenced(this.#state, side, this.#bounds), { calm: true });
    }
    for (const how of ["releasing", "parking"] as const) {
      const next = worker.ending(this.#state, side, how, this.#bounds);
      this.#add(() => `${me}: gives back (${how})`, next);
    }
    if (op !== undefined || hold.deadline <= 0 || hold.sent >= this.#bounds.sentPerTick) return;
    const confirmed = hold.deadline >= this.#bounds.leaseTicks - this.#bounds.marginTicks;
    const next = worker.renewing(this.#state, side, hold, this.#bounds);
    this.#add(() => `${me}: sends a renewal`, next, { calm: !confirmed });
  }

  #acquire(side: Side): void {
    const { op, hold } = this.#state.workers[side];
    if (op !== undefined || hold !== undefined) return;
    const { item } = this.#state;
    // The cut-off of a search for orphans: a tick behind what an acquire may take.
    const cutOff = 2 * (worker.aheadTicks(side, this.#bounds) - this.#bounds.skewTicks - 1);
    const orphan = item?.started === true && item.expires < cutOff;
    const next = worker.acquiring(this.#state, side, this.#bounds);
    this.#add(() => `${nameOf(side)}: sends an acquire`, next, { calm: orphan });
  }

  /** The process dies; another starts in its place, under a name of its own. */
  #crash(side: Side): void {
    const { late, workers } = this.#state;
    const { op, hold } = workers[side];
    const me = nameOf(side);
    const dead = this.#dead(side, late);
    if (dead !== undefined && (op !== undefined || hold !== undefined || dead !== this.#state)) {
      this.#add(() => `${me}: dies`, dead);
    }
    if (op === undefined || op.answer !== undefined || late.length >= this.#bounds.lateRequests) return;
    const midway = this.#dead(side, [...late, op.request]);
    if (midway !== undefined) this.#add(() => `${me}: dies while its ${said(op.request)} is on its way`, midway);
  }

  #dead(side: Side, late: readonly Request[]): State | undefined {
    const { item } = this.#state;
    const isNamed = item?.owner === side || late.some(({ owner }) => owner === side);
    const gone = withWorker(this.#state, side, { op: undefined, hold: undefined });
    if (!isNamed) return gone;
    const name = this.#freeDeadName();
    if (name === undefined) return undefined;
    return {
      ...gone,
      item: item?.owner === side ? { ...item, owner: name } : item,
      late: late.map((request) => (request.owner === side ? { ...request, owner: name } : request)),
    };
  }

  // What happens without a worker.

  #ofLateRequests(): void {
    this.#state.late.forEach((request, at) => {
      const whose = nameOf(request.owner);
      const late = this.#state.late.toSpliced(at, 1);
      this.#apply(request, (applied, broken) => {
        const next = { ...this.#with(applied), late };
        this.#add(() => `a late ${said(request)} of ${whose} is applied`, next, { calm: true, broken });
        // Without an effect it is as good as lost.
        if (applied.changed) this.#add(() => `a late ${said(request)} of ${whose} is lost`, { ...this.#state, late });
      });
    });
  }

  #ofOthers(): void {
    for (let dead = FIRST_DEAD_NAME; dead < FIRST_DEAD_NAME + this.#bounds.deadNames; dead++) {
      this.#byOther({ kind: "release-of", owner: dead }, () => `the leases of ${nameOf(dead)} are freed`);
    }
    if (!this.#bounds.producer) return;
    this.#byOther({ kind: "start" }, () => "the producer starts the connection");
    this.#byOther({ kind: "stop" }, () => "the producer stops the connection");
    this.#byOther({ kind: "delete", now: 2 * this.#bounds.aheadTicks }, () => "the producer deletes the connection");
  }

  #byOther(write: Write, label: () => string): void {
    this.#apply(write, (applied, broken) => {
      if (applied.changed) this.#add(label, this.#with(applied), { broken });
    });
  }

  // Parts.

  #apply(write: Write, then: (applied: Applied, broken: Rule | undefined) => void): void {
    const { item, topEpoch } = this.#state;
    const found = this.#world.store.apply(item, write);
    if (found === undefined) return;
    const applied = write.kind === "acquire" ? ranked(found, topEpoch) : found;
    then(applied, judgeWrite(write, item, applied, topEpoch, this.#world.rules));
  }

  #with({ item }: { readonly item: Item | undefined }): State {
    const { workers, late, topEpoch } = this.#state;
    return { item, workers, late, topEpoch: Math.max(topEpoch, item?.epoch ?? 0) };
  }

  /** A name that nothing bears; undefined when the bound is reached. */
  #freeDeadName(): number | undefined {
    const { item, late } = this.#state;
    for (let dead = FIRST_DEAD_NAME; dead < FIRST_DEAD_NAME + this.#bounds.deadNames; dead++) {
      if (item?.owner !== dead && late.every(({ owner }) => owner !== dead)) return dead;
    }
    return undefined;
  }
}

/** Brings an epoch that starts from the time among the ranks. The first epoch of all is 1. */
function ranked(applied: Applied, topEpoch: number): Applied {
  const { item, answer } = applied;
  const epoch = item?.epoch ?? 0;
  if (item === undefined || !applied.changed || epoch === topEpoch + 1) return applied;
  const rank = topEpoch === 0 ? 1 : Math.max(1, Math.min(epoch, topEpoch + 1));
  return {
    ...applied,
    item: { ...item, epoch: rank },
    answer: answer.epoch === epoch ? { ...answer, epoch: rank } : answer,
  };
}

function withLate(state: State, request: Request): State {
  return { ...state, late: [...state.late, request] };
}
