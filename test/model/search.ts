import type { Bounds } from "./bounds.ts";
import { Codec } from "./codec.ts";
import { Recovery } from "./recovery.ts";
import { ALL_RULES, judgeState, type Rule } from "./rules.ts";
import { FREE, NOBODY, type State } from "./state.ts";
import { ModelStore } from "./store.ts";
import { steps, type Step, type World } from "./steps.ts";
import { stateText } from "./text.ts";

export interface Explored {
  readonly states: number;
  readonly transitions: number;
  /** Steps of the longest of all shortest ways to a state. */
  readonly depth: number;
  /** Distinct pairs of item and write that the real operations were run on. */
  readonly writes: number;
  /** Without further faults, nobody waits longer for an owner, or keeps a stopped connection longer; ticks. */
  readonly longestDarkTicks: number | undefined;
  readonly violation: Violation | undefined;
}

export interface Violation {
  readonly rule: Rule;
  /** What happened, step by step, by a shortest way. */
  readonly history: readonly string[];
}

export interface SearchOptions {
  readonly rules?: ReadonlySet<Rule>;
  /** An error is thrown beyond: a search that was cut off has shown nothing. */
  readonly maxStates?: number;
}

/** Visits every state that can be reached, nearest first, and judges each by the rules. */
export async function explore(bounds: Bounds, options: SearchOptions = {}): Promise<Explored> {
  return new Search(bounds, options).run();
}

class Search {
  readonly #bounds: Bounds;
  readonly #rules: ReadonlySet<Rule>;
  readonly #maxStates: number;
  readonly #world: World;
  readonly #store: ModelStore;
  readonly #codec: Codec;
  readonly #ids = new Map<string, number>();
  readonly #keys: string[] = [];
  readonly #parents: number[] = [];
  readonly #recovery = new Recovery();
  #transitions = 0;

  constructor(bounds: Bounds, options: SearchOptions) {
    this.#bounds = bounds;
    this.#rules = options.rules ?? ALL_RULES;
    this.#maxStates = options.maxStates ?? 5_000_000;
    this.#store = new ModelStore(bounds);
    this.#codec = new Codec(bounds);
    this.#world = { bounds, store: this.#store, rules: this.#rules };
  }

  async run(): Promise<Explored> {
    this.#visit(beginning(this.#bounds), -1);
    let depth = 0;
    let lastOfDepth = 0;
    for (let id = 0; id < this.#keys.length; id++) {
      if (id > lastOfDepth) {
        depth++;
        lastOfDepth = this.#keys.length - 1;
      }
      const state = this.#codec.decode(this.#keys[id] ?? "");
      let found = this.#stepsOf(state);
      // A write that is new may lead to others: ask until everything is known.
      while (await this.#store.settle()) found = this.#stepsOf(state);
      for (const step of found) {
        this.#transitions++;
        const broken = step.broken ?? judgeState(step.next, this.#rules);
        if (broken !== undefined) return this.#result(depth, await this.#violation(broken, id, step));
        const next = this.#visit(step.next, id);
        if (step.calm) this.#recovery.edge(id, next, step.tick);
      }
      if (settled(state)) this.#recovery.settled(id);
      if (this.#keys.length > this.#maxStates)
        throw new Error(`more than ${this.#maxStates} states: narrow the bounds`);
    }
    if (!this.#rules.has("dark-for-ever")) return this.#result(depth, undefined);
    const { dark, longestTicks } = this.#recovery.judge(this.#keys.length);
    if (dark !== undefined) return this.#result(depth, await this.#violation("dark-for-ever", dark, undefined));
    return this.#result(depth, undefined, longestTicks);
  }

  #visit(state: State, parent: number): number {
    const key = this.#codec.encode(state);
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const id = this.#keys.length;
    this.#ids.set(key, id);
    this.#keys.push(key);
    this.#parents.push(parent);
    return id;
  }

  #result(depth: number, violation: Violation | undefined, longestDarkTicks?: number): Explored {
    return {
      states: this.#keys.length,
      transitions: this.#transitions,
      depth,
      writes: this.#store.size,
      longestDarkTicks,
      violation,
    };
  }

  /** Goes the way again, with the workers under the names they had at its beginning. */
  async #violation(rule: Rule, last: number, broken: Step | undefined): Promise<Violation> {
    const way: number[] = [];
    for (let id = last; id > 0; id = this.#parents[id] ?? 0) way.unshift(id);
    let state = beginning(this.#bounds);
    let tick = 0;
    const history: string[] = [];
    const tell = (step: Step): void => {
      if (step.tick) tick++;
      history.push(`${tick}  ${step.label()}  [${stateText(step.next)}]`);
    };
    for (const id of way) {
      const step = this.#stepsOf(state).find(({ next }) => this.#codec.encode(next) === this.#keys[id]);
      if (step === undefined) throw new Error("a way cannot be gone again");
      tell(step);
      state = this.#codec.canonical(step.next);
      this.#stepsOf(state);
      while (await this.#store.settle()) this.#stepsOf(state);
    }
    const final =
      broken === undefined
        ? undefined
        : this.#stepsOf(state).find(
            (step) =>
              (step.broken ?? judgeState(step.next, this.#rules)) === rule &&
              this.#codec.encode(step.next) === this.#codec.encode(broken.next),
          );
    if (final === undefined) history.push("and so on, for ever");
    else tell(final);
    return { rule, history };
  }

  #stepsOf(state: State): Step[] {
    return steps(state, this.#world);
  }
}

/** Nothing was ever asked for; where there is no producer, the connection is just STARTED. */
function beginning({ producer }: Bounds): State {
  const idle = () => ({ op: undefined, hold: undefined });
  const item = producer ? undefined : { started: true, owner: NOBODY, expires: FREE, epoch: 0, seq: 0 };
  return { item, workers: [idle(), idle()], late: [], topEpoch: 0 };
}

/** As the producer wants it: streaming when STARTED, otherwise with nobody who acts. */
function settled({ item, workers }: State): boolean {
  if (item?.started !== true) return workers.every(({ hold }) => hold?.state !== "acting");
  return workers.some(
    ({ hold }, side) =>
      hold?.state === "acting" && hold.deadline > 0 && item.owner === side && item.epoch === hold.epoch,
  );
}
