import { resolveIntrinsics, type References } from "../serverless/intrinsics.ts";
import { compilePattern, type Matcher } from "./filter-pattern.ts";

/** An EventBridge event. Detail's shape is its source's business. */
export interface BusEvent {
  readonly source: string;
  readonly "detail-type": string;
  readonly detail: object;
  readonly [member: string]: unknown;
}

export interface Rule {
  readonly functionName: string;
  readonly pattern: unknown;
}

export interface EventBus {
  readonly stats: { events: number; matched: number };
  /** Hands the event to the target of each rule that matches and names those functions; nobody waits for them. */
  put(event: BusEvent): string[];
}

/**
 * A bus with the rules of serverless.yml.
 * @param references local values of the references in the patterns
 * @throws {Error} naming the function and the place in its pattern that is malformed or has no local value.
 */
export function createEventBus(
  rules: readonly Rule[],
  references: References,
  target: (functionName: string, event: BusEvent) => void,
): EventBus {
  const compiled: readonly { functionName: string; matches: Matcher }[] = rules.map(({ functionName, pattern }) => {
    const at = `functions.${functionName}.eventBridge.pattern`;
    return { functionName, matches: compilePattern(resolveIntrinsics(pattern, references, at), { at }) };
  });
  const stats = { events: 0, matched: 0 };
  return {
    stats,
    put: (event) => {
      stats.events++;
      const names = compiled.filter(({ matches }) => matches(event)).map(({ functionName }) => functionName);
      stats.matched += names.length;
      for (const name of names) target(name, event);
      return names;
    },
  };
}
