/** What the runner and the process that plays the container agent say to each other over IPC. */

/** How to run one task: a Node program that gets exactly this environment. */
export interface Launch {
  readonly taskId: string;
  readonly entry: string;
  readonly env: Readonly<Record<string, string>>;
  /** Its output is appended here. */
  readonly logFile: string;
}

/** `task`: all its processes. `supervisor`: its first one. `worker`: the child of that one. */
export type SignalTarget = "task" | "supervisor" | "worker";

export interface Signal {
  readonly taskId: string;
  readonly target: SignalTarget;
  readonly signal: NodeJS.Signals;
}

/** Host clock milliseconds. */
export interface Signalled {
  /** Taken just before the signal was sent. */
  readonly atMs: number;
  /** After SIGKILL: when every process it went to was seen dead. */
  readonly deadAtMs?: number;
}

export type AgentCall = { readonly launch: Launch } | { readonly signal: Signal };
export type AgentRequest = { readonly id: number } & AgentCall;

/** A task's first process ended, and with it all others of the task. */
export interface TaskEnded {
  readonly taskId: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Host clock milliseconds. */
  readonly atMs: number;
}

export type AgentMessage =
  | { readonly ended: TaskEnded }
  | { readonly id: number; readonly result: Signalled | { readonly pid: number } }
  | { readonly id: number; readonly error: string };
