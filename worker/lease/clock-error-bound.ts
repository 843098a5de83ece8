import { z } from "zod";
import type { Cancel, Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { ClockGuard } from "./clock-guard.ts";

/** The clock fields of the ECS task metadata endpoint, version 4; absent on platforms that do not measure. */
const metadataSchema = z.object({
  ClockDrift: z.object({ ClockErrorBound: z.number().nonnegative().optional() }).optional(),
});

export interface ClockErrorBoundDeps {
  /** `ECS_CONTAINER_METADATA_URI_V4`. */
  readonly endpoint: string;
  readonly clock: Clock;
  readonly guard: ClockGuard;
  readonly logger: Logger;
  readonly fetch: typeof fetch;
}

const INTERVAL_MS = 30_000;
const TIMEOUT_MS = 2000;

/** Tells the guard, again and again, how far off the host's clock may be by ECS's own measurement, where it has one. */
export class ClockErrorBound {
  readonly #deps: ClockErrorBoundDeps;
  #cancel: Cancel | undefined;
  #stopped = false;

  constructor(deps: ClockErrorBoundDeps) {
    this.#deps = deps;
  }

  /** Asks once, and from then on at every interval. Never rejects: without an answer nothing is known. */
  async start(): Promise<void> {
    const { clock, endpoint, guard, logger } = this.#deps;
    try {
      const response = await this.#deps.fetch(`${endpoint}/task`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
      const { ClockDrift } = metadataSchema.parse(await response.json());
      guard.reportErrorBound(ClockDrift?.ClockErrorBound);
    } catch (error) {
      guard.reportErrorBound(undefined);
      logger.debug(errorFields(error), "the task metadata tells nothing of the clock");
    }
    if (!this.#stopped) this.#cancel = clock.after(INTERVAL_MS, () => void this.start());
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }
}
