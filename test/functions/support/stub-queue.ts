import type { HintQueue } from "../../../functions/core/hint-queue.ts";
import { parseHint } from "../../../shared/hints/hint.ts";

/** What a call does: the connection ids it refuses, or an error for the whole of it. */
export type Answer = readonly string[] | Error;

export interface StubQueue extends HintQueue {
  /** Connection ids of each call, in order. */
  readonly calls: readonly (readonly string[])[];
  /** Most calls that were under way at once. */
  readonly mostAtOnce: number;
}

/**
 * A queue that refuses as it is told: a real one throttles single entries only under loads that a test cannot make.
 *
 * @param answer gets the ids and the number of the call, from 0
 */
export function stubQueue(answer: (ids: readonly string[], call: number) => Answer, depth = 0): StubQueue {
  const calls: string[][] = [];
  let atOnce = 0;
  let mostAtOnce = 0;
  return {
    calls,
    get mostAtOnce() {
      return mostAtOnce;
    },
    depth: () => Promise.resolve(depth),
    sendBatch: async (bodies) => {
      const ids = bodies.map((body) => {
        const hint = parseHint(body);
        if ("problem" in hint) throw new Error(hint.problem);
        return hint.connectionId;
      });
      calls.push(ids);
      atOnce++;
      mostAtOnce = Math.max(mostAtOnce, atOnce);
      const result = answer(ids, calls.length - 1);
      await new Promise((resolve) => setImmediate(resolve));
      atOnce--;
      if (result instanceof Error) throw result;
      return ids.flatMap((id, i) => (result.includes(id) ? [i] : []));
    },
  };
}
