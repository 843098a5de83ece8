import type { Random } from "../../../shared/random.ts";

/** Numbers in [0, 1) that are the same in every run. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
