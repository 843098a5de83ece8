/** A number in [0, 1). Handed in wherever jitter is drawn, so that one seed replays a whole run. */
export type Random = () => number;

/** `baseMs` moved by at most ±`ratio` of itself, so that a fleet never acts in lockstep. */
export function jittered(baseMs: number, ratio: number, random: Random): number {
  return baseMs * (1 - ratio + 2 * ratio * random());
}

/** Full jitter over a doubling delay: uniform in [0, min(capMs, baseMs · 2^attempt)]. */
export function fullJitter(baseMs: number, capMs: number, attempt: number, random: Random): number {
  return random() * Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30));
}

/** A copy of `items` in random order. */
export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    const a = result[i];
    const b = result[j];
    if (a !== undefined && b !== undefined) {
      result[i] = b;
      result[j] = a;
    }
  }
  return result;
}
