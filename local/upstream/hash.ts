/** A repeatable 32-bit hash of a text under a seed. Not for secrets: only to spread phases and steps. */
export function hash32(seed: number, text: string): number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  for (let at = 0; at < text.length; at += 1) {
    state = Math.imul(state ^ text.charCodeAt(at), 0x85ebca6b);
    state = (state << 13) | (state >>> 19);
  }
  state = Math.imul(state ^ (state >>> 16), 0xc2b2ae35);
  return (state ^ (state >>> 15)) >>> 0;
}

/** A repeatable stream of 32-bit values (xorshift; its state must never be zero). */
export function stream32(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state;
  };
}
