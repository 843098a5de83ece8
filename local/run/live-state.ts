import { closeSync, openSync, readSync } from "node:fs";
import { parseJournal, type JournalLine } from "../audit/journal.ts";

/** Who holds a connection as far as the journals tell. */
export interface LiveHolding {
  readonly task: string;
  readonly epoch: number;
  open: boolean;
}

interface Followed {
  readonly fd: number;
  /** Bytes of a line that is not complete yet. */
  rest: Buffer;
}

const CHUNK_BYTES = 256 * 1024;
const LINE_FEED = 10;

/** Follows the journals of all tasks while they grow: the present state, for the view and for the next fault. */
export class LiveState {
  readonly #files = new Map<string, Followed>();
  readonly #holdings = new Map<string, LiveHolding>();
  readonly #listeners: ((line: JournalLine) => void)[] = [];
  readonly #chunk = Buffer.allocUnsafe(CHUNK_BYTES);

  follow(taskId: string, path: string): void {
    // Created here, so that it can be read before the worker opens it.
    this.#files.set(taskId, { fd: openSync(path, "a+"), rest: Buffer.alloc(0) });
  }

  /** Lines of workers that lost or gained something since; in order within one task. */
  onLine(listener: (line: JournalLine) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads what was written since the last call. */
  poll(): void {
    for (const [taskId, file] of this.#files) {
      for (let read = this.#read(file); read > 0; read = this.#read(file)) this.#take(taskId, file, read);
    }
  }

  /** The task is dead: what it held, it holds no more. */
  forget(taskId: string): void {
    for (const [connectionId, { task }] of this.#holdings) if (task === taskId) this.#holdings.delete(connectionId);
  }

  get(connectionId: string): LiveHolding | undefined {
    return this.#holdings.get(connectionId);
  }

  get holdings(): ReadonlyMap<string, LiveHolding> {
    return this.#holdings;
  }

  openCount(): number {
    let count = 0;
    for (const { open } of this.#holdings.values()) if (open) count += 1;
    return count;
  }

  heldBy(taskId: string): string[] {
    return [...this.#holdings].flatMap(([connectionId, { task }]) => (task === taskId ? [connectionId] : []));
  }

  close(): void {
    for (const { fd } of this.#files.values()) closeSync(fd);
    this.#files.clear();
  }

  #read({ fd }: Followed): number {
    return readSync(fd, this.#chunk, 0, CHUNK_BYTES, null);
  }

  #take(taskId: string, file: Followed, read: number): void {
    const bytes = Buffer.concat([file.rest, this.#chunk.subarray(0, read)]);
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    file.rest = Buffer.from(bytes.subarray(end));
    for (const line of parseJournal(bytes.toString("utf8", 0, end), taskId).lines) this.#apply(line);
  }

  #apply(line: JournalLine): void {
    const { connectionId, task, epoch, event } = line;
    const known = this.#holdings.get(connectionId);
    switch (event) {
      case "held":
        if (known === undefined || epoch > known.epoch) this.#holdings.set(connectionId, { task, epoch, open: false });
        break;
      case "open":
      case "closed":
        if (known?.epoch === epoch) known.open = event === "open";
        break;
      case "released":
      case "parked":
      case "lost":
      case "fenced":
        if (known?.epoch === epoch) this.#holdings.delete(connectionId);
        break;
      case "renewed":
        break;
    }
    for (const listener of this.#listeners) listener(line);
  }
}
