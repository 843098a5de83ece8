/** What a fault does to the connections of a proxy. `out` is away from the client, `in` is towards it. */
export type NetworkEffect =
  /** Everything arrives later: by `latencyMs`, and by up to `jitterMs` more; the order stays, as with TCP. */
  | { readonly kind: "latency"; readonly latencyMs: number; readonly jitterMs: number }
  /** No more than so much gets through each way, per connection. */
  | { readonly kind: "slow"; readonly bytesPerSecond: number }
  /** Nothing arrives, and nobody is told. What was sent arrives when it is over, as TCP sends it again. */
  | { readonly kind: "black-hole"; readonly direction: "out" | "in" | "both" }
  /** All connections are reset now, and again each time the interval is over. */
  | { readonly kind: "reset"; readonly everyMs: number }
  /** All connections are reset now, and new ones are refused. */
  | { readonly kind: "cut" };

/** What all effects on one direction of one connection come to. */
export interface Disturbance {
  readonly latencyMs: number;
  readonly jitterMs: number;
  readonly bytesPerSecond: number;
  readonly blackHole: boolean;
}

export const CLEAR: Disturbance = { latencyMs: 0, jitterMs: 0, bytesPerSecond: Infinity, blackHole: false };

export function isClear({ latencyMs, jitterMs, bytesPerSecond, blackHole }: Disturbance): boolean {
  return latencyMs === 0 && jitterMs === 0 && bytesPerSecond === Infinity && !blackHole;
}

/** Delays add up, the narrowest bandwidth counts, and one black hole is enough. */
export function combined(effects: Iterable<NetworkEffect>, direction: "out" | "in"): Disturbance {
  let { latencyMs, jitterMs, bytesPerSecond, blackHole } = CLEAR;
  for (const effect of effects) {
    switch (effect.kind) {
      case "latency":
        latencyMs += effect.latencyMs;
        jitterMs += effect.jitterMs;
        break;
      case "slow":
        bytesPerSecond = Math.min(bytesPerSecond, effect.bytesPerSecond);
        break;
      case "black-hole":
        blackHole ||= effect.direction === "both" || effect.direction === direction;
        break;
      case "reset":
      case "cut":
        break;
    }
  }
  return { latencyMs, jitterMs, bytesPerSecond, blackHole };
}
