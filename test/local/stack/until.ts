import { setTimeout as delay } from "node:timers/promises";

/** Waits until `condition` gives something else than undefined or false; fails after a bound that only a hang reaches. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  limitMs = 20_000,
): Promise<NonNullable<T>> {
  const endMs = performance.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== null && value !== false) return value;
    if (performance.now() > endMs) throw new Error(`waited ${limitMs} ms for: ${what}`);
    await delay(20);
  }
}

/** Whether a process with this id exists. */
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
