import type { PlayedChaos } from "./player.ts";

/** Host clock milliseconds; a fault that is still on has no end. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

export function spanOf({ atMs, endedAtMs }: PlayedChaos): Span {
  return { fromMs: atMs, toMs: endedAtMs ?? Infinity };
}

/** When the worker in this place could not reach DynamoDB as it should; spans that touch are one. */
export function storeOutages(played: readonly PlayedChaos[], slot: number): Span[] {
  const spans = played
    .filter(({ planned, slot: hit }) => planned.does === "network" && planned.place.at === "dynamodb" && hit === slot)
    .map(spanOf);
  return merged(spans);
}

export function merged(spans: readonly Span[]): Span[] {
  const result: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.fromMs - b.fromMs)) {
    const last = result.at(-1);
    if (last === undefined || span.fromMs > last.toMs) result.push(span);
    else result[result.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, span.toMs) };
  }
  return result;
}

/**
 * When a recovery must be over that takes at most `boundMs` where nothing disturbs it: every other fault that was on within
 * that time makes it begin anew when the fault is over.
 *
 * @returns the time, and whether anything disturbed it
 */
export function recoveryDeadline(
  atMs: number,
  others: readonly Span[],
  boundMs: number,
  disturbedBoundMs: number,
): { readonly deadlineMs: number; readonly disturbed: boolean } {
  let fromMs = atMs;
  let limitMs = boundMs;
  for (;;) {
    const until = fromMs + limitMs;
    const later = others.filter((span) => span.fromMs < until && span.toMs > fromMs).map(({ toMs }) => toMs);
    if (later.length === 0) return { deadlineMs: until, disturbed: limitMs !== boundMs || fromMs !== atMs };
    fromMs = Math.max(...later);
    limitMs = disturbedBoundMs;
  }
}
