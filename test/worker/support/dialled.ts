import { SystemClock } from "../../../shared/clock.ts";
import type { SocketEnd } from "../../../worker/connection/close-codes.ts";
import {
  dialer,
  type SocketEvents,
  type SocketSettings,
  type UpstreamSocket,
} from "../../../worker/connection/socket.ts";
import { until } from "../../local/stack/until.ts";

/** Patient: a test that is about one of these sets it. */
export const SOCKET_SETTINGS: SocketSettings = {
  handshakeTimeoutMs: 20_000,
  pingIntervalMs: 20_000,
  idleTimeoutMs: 60_000,
  maxMessageBytes: 1_048_576,
  unfinishedMaxBytes: 67_108_864,
  closeGraceMs: 20_000,
};

/** A dialled socket and everything it told. */
export class Dialled implements SocketEvents {
  readonly socket: UpstreamSocket;
  readonly messages: (string | Uint8Array)[] = [];
  readonly ends: SocketEnd[] = [];
  opens = 0;
  mayAct = (): boolean => true;
  /** Called with each message, before it is kept. */
  onEach: (() => void) | undefined;

  constructor(url: string, settings: Partial<SocketSettings> = {}) {
    const dial = dialer(new SystemClock(), { ...SOCKET_SETTINGS, ...settings });
    this.socket = dial(url, this, () => this.mayAct());
  }

  onOpen(): void {
    this.opens++;
  }

  onMessage(payload: string | Uint8Array): void {
    this.onEach?.();
    this.messages.push(payload);
  }

  onEnd(end: SocketEnd): void {
    this.ends.push(end);
  }

  async opened(): Promise<this> {
    await until("the socket opens", () => {
      if (this.ends[0] !== undefined) throw new Error(`ended instead: ${JSON.stringify(this.ends[0])}`);
      return this.opens > 0;
    });
    return this;
  }

  /** How the socket ended. */
  end(): Promise<SocketEnd> {
    return until("the socket ends", () => this.ends[0]);
  }

  async received(count: number): Promise<void> {
    await until(`${count} messages`, () => this.messages.length >= count);
  }
}
