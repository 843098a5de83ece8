/** The data that the parent handed to this child process. */
export function childInput(): unknown {
  return JSON.parse(process.argv[2] ?? "null") as unknown;
}

/** `ending`: why the process is about to end though nobody asked for it. */
export function report(message: { ready: unknown } | { failed: string } | { ending: string }): void {
  process.send?.(message);
}

/**
 * Runs `cleanUp` once when the parent closes the channel or is gone, and ends the process. Signals of a terminal are the
 * parent's business: this process ends when the parent says so.
 */
export function endWithParent(cleanUp: () => Promise<void>): void {
  let ending = false;
  const end = (): void => {
    if (ending) return;
    ending = true;
    cleanUp().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  process.on("disconnect", end);
  process.on("SIGTERM", end);
  process.on("SIGINT", () => undefined);
  // The parent may have died before the listener was there.
  if (!process.connected) end();
}
