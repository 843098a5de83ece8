/**
 * How an event source mapping with ReportBatchItemFailures reads a function's answer.
 *
 * @returns the index of the record to go on from: `sequenceNumbers.length` when all of it is done, else the lowest one that
 * was reported. An answer that is malformed, or names a number that is not of the batch, fails the whole of it (0).
 */
export function resumeIndex(answer: unknown, sequenceNumbers: readonly string[]): number {
  const done = sequenceNumbers.length;
  if (answer === null || answer === undefined) return done;
  if (typeof answer !== "object") return 0;
  const failures = (answer as { batchItemFailures?: unknown }).batchItemFailures;
  if (failures === null || failures === undefined) return done;
  if (!Array.isArray(failures)) return 0;
  let lowest = done;
  for (const failure of failures as unknown[]) {
    const identifier: unknown =
      typeof failure === "object" && failure !== null
        ? (failure as Record<string, unknown>)["itemIdentifier"]
        : undefined;
    const index = typeof identifier === "string" ? sequenceNumbers.indexOf(identifier) : -1;
    if (index < 0) return 0;
    lowest = Math.min(lowest, index);
  }
  return lowest;
}
