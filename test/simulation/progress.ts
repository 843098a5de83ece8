/** The part of a terminal, or of a pipe, that is written to. */
export interface ProgressOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

const TERMINAL_MS = 200;
const PIPE_MS = 10_000;

/** Tells how far a long run is: one line in place on a terminal, a line now and then elsewhere. */
export class Progress {
  readonly #output: ProgressOutput;
  readonly #nowMs: () => number;
  readonly #startedAtMs: number;
  #toldAtMs: number;
  #shown = false;

  constructor(output: ProgressOutput, nowMs: () => number) {
    this.#output = output;
    this.#nowMs = nowMs;
    this.#startedAtMs = nowMs();
    this.#toldAtMs = this.#startedAtMs;
  }

  tell(done: number, all: number, failed: number): void {
    const nowMs = this.#nowMs();
    const terminal = this.#output.isTTY === true;
    if (nowMs - this.#toldAtMs < (terminal ? TERMINAL_MS : PIPE_MS)) return;
    this.#toldAtMs = nowMs;
    const left = ((nowMs - this.#startedAtMs) / done) * (all - done);
    const text = `${done} of ${all} seeds, ${failed} failed, about ${Math.ceil(left / 1000)} s left`;
    this.#output.write(terminal ? `\r\x1b[K${text}` : `${text}\n`);
    this.#shown = terminal;
  }

  /** Before anything else is written to the same terminal. */
  clear(): void {
    if (this.#shown) this.#output.write("\r\x1b[K");
    this.#shown = false;
  }
}
