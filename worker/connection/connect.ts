import { connect as tcpConnect, isIP, type Socket, type TcpNetConnectOpts } from "node:net";
import { connect as tlsConnect, type ConnectionOptions } from "node:tls";

/** How Node's HTTP client asks for a connection; it may be handed one later through the callback. */
type ConnectOptions = TcpNetConnectOpts & ConnectionOptions;
type Connected = (error: Error | null, socket?: Socket) => void;

/**
 * Makes the connections of one dial, and hands one over only to an owner that still may act: a process that stood still
 * between the dial and the connect must not say a word to the upstream, where the next owner may be connected already.
 */
export class GuardedConnect {
  readonly #secure: boolean;
  readonly #mayAct: () => boolean;
  #pending: Socket | undefined;

  constructor(secure: boolean, mayAct: () => boolean) {
    this.#secure = secure;
    this.#mayAct = mayAct;
  }

  /** For the `createConnection` option of an HTTP request: answers through the callback alone. */
  readonly createConnection = (options: ConnectOptions, connected: Connected): undefined => {
    const tcp = tcpConnect({ host: options.host ?? "localhost", port: options.port });
    this.#await(tcp, "connect", connected, () => {
      if (!this.#secure) {
        connected(null, tcp);
        return;
      }
      // What becomes of it is told by the TLS socket around it; without a listener it would end the process.
      tcp.on("error", () => undefined);
      const host = options.host ?? "localhost";
      // The host is what the certificate must name; without it, an address would be let pass as "localhost". A server
      // name cannot be an address.
      const tls = tlsConnect({ socket: tcp, host, ...(isIP(host) === 0 ? { servername: host } : {}) });
      this.#await(tls, "secureConnect", connected, () => connected(null, tls));
    });
    return undefined;
  };

  /** Gives up what is not connected yet. */
  abort(): void {
    this.#pending?.destroy();
  }

  #await(socket: Socket, event: "connect" | "secureConnect", connected: Connected, next: () => void): void {
    this.#pending = socket;
    const fail = (error: Error): void => connected(error);
    const closed = (): void => connected(new Error("the connection ended before the handshake"));
    socket.once("error", fail).once("close", closed);
    socket.once(event, () => {
      socket.off("error", fail).off("close", closed);
      this.#pending = undefined;
      if (this.#mayAct()) {
        next();
        return;
      }
      socket.destroy();
      connected(new Error("the lease's deadline passed before the connection was there"));
    });
  }
}
