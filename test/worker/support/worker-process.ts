import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { alive, until } from "../../local/stack/until.ts";

export interface ProcessOptions {
  /** The program: a bundle or a source file. */
  readonly entry: string;
  readonly environment: Record<string, string>;
  readonly journalFile: string;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly task: string;
  readonly [field: string]: unknown;
}

interface JournalLine {
  readonly t: number;
  readonly event: string;
  readonly connectionId?: string;
  readonly epoch?: number;
}

/** Generous: a process that has to compile its modules on a busy machine. */
const LIMIT_MS = 60_000;

/** A task's process, watched from outside as an orchestrator would: exit, log lines, health, journal. */
export class WorkerProcess {
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly #child: ChildProcess;
  readonly journalFile: string;
  #stdout = "";
  #stderr = "";
  #gone = false;

  constructor({ entry, environment, journalFile }: ProcessOptions) {
    this.journalFile = journalFile;
    const args = ["--disable-warning=ExperimentalWarning", entry];
    this.#child = spawn(process.execPath, args, {
      env: { ...environment, WS_FLEET_JOURNAL_FILE: journalFile },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.#stdout += text));
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    this.exited = new Promise((resolve) => {
      // Not `exit`: by then the last lines may still be on their way.
      this.#child.once("close", (code, signal) => {
        this.#gone = true;
        resolve({ code, signal });
      });
    });
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error("the process could not be started");
    return this.#child.pid;
  }

  get errorOutput(): string {
    return this.#stderr;
  }

  lines(message?: string): LogLine[] {
    return this.#stdout
      .split("\n")
      .slice(0, -1)
      .flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as LogLine] : []))
      .filter((line) => message === undefined || line.message === message);
  }

  /** The first line with this message. */
  said(message: string): Promise<LogLine> {
    return this.#until(`the line "${message}"`, () => this.lines(message)[0]);
  }

  /** The supervised worker's process. */
  workerPid(): Promise<number> {
    return this.#until("the supervised process", () => childOf(this.pid));
  }

  async health(): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const { health_port: port } = await this.said("worker starting");
    const response = await fetch(`http://127.0.0.1:${String(port)}/health`);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  /** Waits until so many sockets are open. */
  async streaming(sockets: number): Promise<void> {
    await this.#until(`${sockets} open sockets`, async () => (await this.health()).body["openSockets"] === sockets);
  }

  journal(event?: string): JournalLine[] {
    if (!existsSync(this.journalFile)) return [];
    return readFileSync(this.journalFile, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as JournalLine)
      .filter((line) => event === undefined || line.event === event);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it and what it started, whatever state they are in. */
  async destroy(): Promise<void> {
    if (this.#gone) return;
    for (const pid of [childOf(this.pid), this.pid]) if (pid !== undefined && alive(pid)) process.kill(pid, "SIGKILL");
    await this.exited;
  }

  async #until<T>(what: string, condition: () => T | Promise<T>): Promise<NonNullable<T>> {
    try {
      return await until(
        what,
        () => {
          if (this.#gone) throw new Error("the process has ended");
          return condition();
        },
        LIMIT_MS,
      );
    } catch (error) {
      const output = `${this.#stdout.slice(-2000)}\n${this.#stderr.slice(-2000)}`;
      throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}\n${output}`, {
        cause: error,
      });
    }
  }
}

/** The only child of a process, as the kernel tells it; undefined when there is none, or the process is gone. */
function childOf(pid: number): number | undefined {
  const file = `/proc/${pid}/task/${pid}/children`;
  const [child = ""] = existsSync(file) ? readFileSync(file, "utf8").split(" ") : [];
  return child === "" ? undefined : Number(child);
}
