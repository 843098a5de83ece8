/** What the client and the process that hosts the functions say to each other over IPC. */

/** A function as the host needs it. */
export interface HostedFunction {
  readonly name: string;
  /** `path/without/extension.export`, relative to the project's root. */
  readonly handler: string;
  readonly timeoutMs: number;
  readonly memoryMb: number;
}

export interface HostInput {
  readonly projectRoot: string;
  readonly region: string;
  readonly functions: readonly HostedFunction[];
}

export interface InvokeRequest {
  readonly id: string;
  readonly functionName: string;
  readonly event: unknown;
}

export interface FunctionError {
  readonly errorType: string;
  readonly errorMessage: string;
  readonly trace?: string;
}

/** `result` is what the function returned, as JSON carries it. */
export type InvokeReply = { readonly id: string } & ({ readonly result: unknown } | { readonly error: FunctionError });

export function functionArn(region: string, functionName: string): string {
  return `arn:aws:lambda:${region}:000000000000:function:${functionName}`;
}
