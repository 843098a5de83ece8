/** Exit codes of worker and supervisor. */
export const EXIT = {
  /** Drained: every lease was given back. */
  ok: 0,
  crashed: 1,
  /** Settings were refused. */
  configuration: 2,
  /** The drain budget ended before every lease was given back. */
  leasesLeft: 3,
  /** The supervisor is gone. */
  orphaned: 4,
} as const;
