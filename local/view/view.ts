import type { Cancel, Clock } from "../../shared/clock.ts";
import { frame, plainLine } from "./frame.ts";
import type { Snapshot } from "./snapshot.ts";

/** The part of a terminal, or of a pipe, that a view needs. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
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
  /** Draws once more and leaves the terminal as it was. */
  stop(): void;
}

const DEFAULT_COLUMNS = 80;
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
  #drawn = 0;
  #stopped = false;

  constructor(options: ViewOptions) {
    this.#options = options;
    options.output.write(HIDE_CURSOR);
    this.#tick();
  }

  say(text: string): void {
    this.#options.output.write(`${this.#home()}${text}\n`);
    this.#drawn = 0;
    this.#draw();
  }

  stop(): void {
    if (this.#stopped) return;
    this.#draw();
    this.#stopped = true;
    this.#cancel();
    this.#options.output.write(SHOW_CURSOR);
  }

  #tick(): void {
    if (this.#stopped) return;
    this.#draw();
    this.#cancel = this.#options.clock.after(PICTURE_MS, () => this.#tick());
  }

  #draw(): void {
    if (this.#stopped) return;
    const { output, snapshot } = this.#options;
    // A terminal that does not know its size says 0.
    const width = output.columns === undefined || output.columns === 0 ? DEFAULT_COLUMNS : output.columns;
    const lines = frame(snapshot(), width);
    output.write(`${this.#home()}${lines.join("\n")}\n`);
    this.#drawn = lines.length;
  }

  /** Back to the first line of the picture, with nothing below it. */
  #home(): string {
    return this.#drawn === 0 ? "" : `\x1b[${this.#drawn}A\r${CLEAR_BELOW}`;
  }
}
