import type { Cancel, Clock } from "../../shared/clock.ts";
import { frame, plainLine, type Size } from "./frame.ts";
import type { Snapshot } from "./snapshot.ts";

/** The part of a terminal, or of a pipe, that a view needs. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  /** A terminal tells when its size has changed. */
  on?(event: "resize", listener: () => void): unknown;
  off?(event: "resize", listener: () => void): unknown;
}

export interface ViewOptions {
  readonly output: Output;
  readonly clock: Clock;
  readonly snapshot: () => Snapshot;
}

/** Shows a run while it lasts. */
export interface View {
  /** A line that stays, above the picture. */
  say(text: string): void;
  /** Takes the picture away: what was said stays, and the result comes below it. */
  stop(): void;
}

/** A terminal that does not know its size says 0. */
const DEFAULT_SIZE: Size = { columns: 80, rows: 24 };
const PICTURE_MS = 500;
const LINE_MS = 5_000;
const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";
const CLEAR_BELOW = "\x1b[0J";

/** A picture drawn in place on a terminal; a line now and then elsewhere. */
export function startView(options: ViewOptions): View {
  return options.output.isTTY === true ? new Picture(options) : new Lines(options);
}

class Lines implements View {
  readonly #options: ViewOptions;
  #cancel: Cancel;
  #stopped = false;

  constructor(options: ViewOptions) {
    this.#options = options;
    this.#cancel = options.clock.after(LINE_MS, () => this.#tick());
  }

  say(text: string): void {
    this.#options.output.write(`${text}\n`);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #tick(): void {
    if (this.#stopped) return;
    this.say(plainLine(this.#options.snapshot()));
    this.#cancel = this.#options.clock.after(LINE_MS, () => this.#tick());
  }
}

class Picture implements View {
  readonly #options: ViewOptions;
  #cancel: Cancel = () => undefined;
  /** Lengths of the lines that stand on the terminal. */
  #drawn: readonly number[] = [];
  readonly #onResize = (): void => this.#draw();
  #stopped = false;

  constructor(options: ViewOptions) {
    this.#options = options;
    options.output.write(HIDE_CURSOR);
    options.output.on?.("resize", this.#onResize);
    this.#tick();
  }

  say(text: string): void {
    this.#options.output.write(`${this.#home()}${text}\n`);
    this.#drawn = [];
    this.#draw();
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#cancel();
    this.#options.output.off?.("resize", this.#onResize);
    this.#options.output.write(`${this.#home()}${SHOW_CURSOR}`);
  }

  #tick(): void {
    if (this.#stopped) return;
    this.#draw();
    this.#cancel = this.#options.clock.after(PICTURE_MS, () => this.#tick());
  }

  #draw(): void {
    if (this.#stopped) return;
    const { output, snapshot } = this.#options;
    const lines = frame(snapshot(), this.#size);
    output.write(`${this.#home()}${lines.join("\n")}\n`);
    this.#drawn = lines.map(({ length }) => length);
  }

  get #size(): Size {
    const { columns, rows } = this.#options.output;
    return { columns: columns || DEFAULT_SIZE.columns, rows: rows || DEFAULT_SIZE.rows };
  }

  /** Back to the first line of the picture, with nothing below it. A terminal that became narrower broke its lines. */
  #home(): string {
    if (this.#drawn.length === 0) return "";
    const { columns, rows } = this.#size;
    const used = this.#drawn.reduce((sum, length) => sum + Math.max(1, Math.ceil(length / columns)), 0);
    return `\x1b[${Math.min(used, rows - 1)}A\r${CLEAR_BELOW}`;
  }
}
