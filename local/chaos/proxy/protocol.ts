import type { NetworkEffect } from "./effect.ts";
import type { LinkRecord } from "./link.ts";
import type { ProxyTotals } from "./proxy.ts";

/** What the process of the proxies gets at its start. Proxies are named by their place in this list. */
export interface ProxiesInput {
  readonly proxies: readonly {
    readonly target: { readonly host: string; readonly port: number };
    readonly webSocket: boolean;
  }[];
  /** Of the jitter. */
  readonly seed: number;
}

export interface ProxiesReady {
  readonly ports: readonly number[];
}

/** A fault as it is asked for; `id` is the caller's, see {@link Fault} for the rest. */
export interface FaultRequest {
  readonly id: number;
  readonly effect: NetworkEffect;
  readonly share: number;
  readonly proxies: readonly number[];
}

/** What came of a fault: connections that it was on, and the bytes that came while it was. */
export interface FaultFigures {
  readonly connections: number;
  readonly bytes: number;
}

/** Every call of the parent: what it gives and what it gets. */
export interface ProxyCalls {
  begin: { params: FaultRequest; result: object };
  end: { params: { id: number }; result: FaultFigures };
  totals: { params: object; result: { readonly totals: readonly ProxyTotals[] } };
  records: { params: { proxy: number }; result: { readonly records: readonly LinkRecord[] } };
}

export type ProxyCallName = keyof ProxyCalls;

export type ProxyRequest = {
  [Name in ProxyCallName]: { readonly call: number; readonly name: Name; readonly params: ProxyCalls[Name]["params"] };
}[ProxyCallName];

export type ProxyAnswer =
  { readonly call: number; readonly result: object } | { readonly call: number; readonly error: string };
