import { hash32, stream32 } from "../upstream/hash.ts";
import type { Random } from "../../shared/random.ts";

/** The same numbers for the same seed. */
export function seededRandom(seed: number): Random {
  const next = stream32(hash32(seed, "faults"));
  return () => next() / 2 ** 32;
}
