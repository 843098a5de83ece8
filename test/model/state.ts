/**
 * One global state: the item, two workers, what is late, and time as seen from now. Never changed in place.
 *
 * Times are integers in half ticks, relative to true time: even ones are whole ticks, an odd one stands for a whole tick
 * and one millisecond more (a second renewal within a tick writes its expiry one millisecond higher). Epochs and
 * checkpoints are ranks: only their order and equality matter to anybody.
 */
export interface State {
  readonly item: Item | undefined;
  readonly workers: readonly [Worker, Worker];
  /** Requests that may still be applied, although nobody waits for their answer. */
  readonly late: readonly Request[];
  /** The highest epoch that was ever written; outlives the item. */
  readonly topEpoch: number;
}

export type Side = 0 | 1;

export interface Item {
  readonly started: boolean;
  /** {@link NOBODY} when free. */
  readonly owner: number;
  readonly expires: number;
  /** 0 before the first acquire. */
  readonly epoch: number;
  /** 0 before the first checkpoint. */
  readonly seq: number;
}

/** Names: 0 and 1 are the living workers, higher ones are dead processes. */
export const NOBODY = -1;
export const FIRST_DEAD_NAME = 2;

/** `lease_expires_at_ms = 0`: before every other time. */
export const FREE = -1000;

export interface Worker {
  /** The one lease operation that this worker waits for. */
  readonly op: Operation | undefined;
  readonly hold: Hold | undefined;
}

export interface Operation {
  readonly request: Request;
  /** When it was sent, in ticks from now, for the deadline. */
  readonly sentAt: number;
  /** A renewal by which an own older life is taken over. */
  readonly takeOver: boolean;
  /** Set when the request was applied and its answer is on its way back. */
  readonly answer: Answer | undefined;
}

export interface Request {
  readonly kind: "acquire" | "renew" | "release" | "park";
  readonly owner: number;
  /** Of the holder; 0 for an acquire. */
  readonly epoch: number;
  /** The acquire's cut-off: expiries below it may be taken. {@link FREE} otherwise. */
  readonly takeable: number;
  /** What would be written. */
  readonly expires: number;
  /** The checkpoint that would be written; 0 for none. */
  readonly seq: number;
}

/** What a worker concludes from an answer, by the real operation. */
export interface Answer {
  readonly kind: "held" | "older-life" | "refused";
  /** As the answer's item shows them, where they are read. */
  readonly epoch: number;
  readonly expires: number;
  readonly seq: number;
  readonly started: boolean;
}

export interface Hold {
  /** `acting` until its end is asked for or it is fenced; from then on it only gives back. */
  readonly state: "acting" | "releasing" | "parking";
  readonly epoch: number;
  /** The local deadline, in ticks from now; not below -1. */
  readonly deadline: number;
  /** How many expiries this holder sent within this tick. */
  readonly sent: number;
  /** The newest checkpoint; 0 for none. */
  readonly seq: number;
  /** Where a park ends, once its first attempt was sent; the attempts after it repeat that value. */
  readonly parkUntil: number | undefined;
  readonly fenced: boolean;
}

/**
 * What counts as acting in the rules. A holding may act only before its deadline; here the tick of the deadline counts
 * too, for a side effect that was checked just before it and lands just then.
 */
export function acts({ hold }: Worker): boolean {
  return hold?.state === "acting" && hold.deadline >= 0;
}

/** The state with one worker changed. */
export function withWorker(state: State, side: Side, change: Partial<Worker>): State {
  const [first, second] = state.workers;
  const workers =
    side === 0 ? ([{ ...first, ...change }, second] as const) : ([first, { ...second, ...change }] as const);
  return { item: state.item, workers, late: state.late, topEpoch: state.topEpoch };
}

/** One tick of true time: everything comes a tick nearer. */
export function passTick({ item, workers: [first, second], late, topEpoch }: State): State {
  return {
    item: item === undefined ? undefined : { ...item, expires: earlier(item.expires) },
    workers: [agedWorker(first), agedWorker(second)],
    late: late.map(aged),
    topEpoch,
  };
}

function agedWorker({ op, hold }: Worker): Worker {
  return {
    op: op && {
      ...op,
      request: aged(op.request),
      sentAt: op.sentAt - 1,
      answer: op.answer && { ...op.answer, expires: earlier(op.answer.expires) },
    },
    hold: hold && {
      ...hold,
      deadline: Math.max(-1, hold.deadline - 1),
      sent: 0,
      parkUntil: hold.parkUntil === undefined ? undefined : earlier(hold.parkUntil),
    },
  };
}

function aged(request: Request): Request {
  return { ...request, expires: earlier(request.expires), takeable: earlier(request.takeable) };
}

function earlier(time: number): number {
  return time === FREE ? FREE : time - 2;
}
