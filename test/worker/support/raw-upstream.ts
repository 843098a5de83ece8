import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { until } from "../../local/stack/until.ts";

/** RFC 6455, section 1.3. */
const HANDSHAKE_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export const OPCODE = { text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const;

/** One unmasked, unfragmented frame, as a server sends it. */
export function frame(opcode: number, payload: string | Buffer = ""): Buffer {
  const body = Buffer.from(payload);
  if (body.length < 126) return Buffer.concat([Buffer.from([0x80 | opcode, body.length]), body]);
  const head = Buffer.from([0x80 | opcode, 127, 0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(body.length, 6);
  return Buffer.concat([head, body]);
}

export function closeFrame(code: number): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return frame(OPCODE.close, payload);
}

/** The server's end of one socket. */
export interface RawSocket {
  readonly socket: Socket;
  /** Opcodes of the frames received after the handshake, in order. */
  opcodes(): number[];
  readonly ended: boolean;
}

/**
 * A WebSocket server that does nothing by itself: no pong, no reply to a close, no end of the TCP connection. What a
 * client sends is kept as it came.
 */
export class RawUpstream {
  readonly #server = createServer();
  readonly #sockets: RawSocket[] = [];

  private constructor() {
    this.#server.on("upgrade", (request, socket: Socket) => {
      const accept = createHash("sha1")
        .update(`${request.headers["sec-websocket-key"] ?? ""}${HANDSHAKE_GUID}`)
        .digest("base64");
      const chunks: Buffer[] = [];
      let ended = false;
      socket.on("data", (chunk: Buffer) => chunks.push(chunk));
      socket.on("error", () => undefined);
      socket.on("close", () => (ended = true));
      // A client that goes away is noticed; this end never goes first.
      socket.allowHalfOpen = false;
      this.#sockets.push({
        socket,
        opcodes: () => opcodesOf(Buffer.concat(chunks)),
        get ended() {
          return ended;
        },
      });
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
    });
  }

  static async start(): Promise<RawUpstream> {
    const upstream = new RawUpstream();
    upstream.#server.listen(0, "127.0.0.1");
    await once(upstream.#server, "listening");
    return upstream;
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** The n-th socket that was upgraded, from 0. */
  socket(n = 0): Promise<RawSocket> {
    return until(`socket ${n}`, () => this.#sockets[n]);
  }

  async stop(): Promise<void> {
    for (const { socket } of this.#sockets) socket.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** Reads the headers of complete frames; a client's frames are masked and, in these tests, short. */
function opcodesOf(bytes: Buffer): number[] {
  const opcodes: number[] = [];
  for (let at = 0; at + 2 <= bytes.length;) {
    const length = bytes.readUInt8(at + 1) & 0x7f;
    if (length > 125) throw new Error("a client of these tests sends no long frames");
    opcodes.push(bytes.readUInt8(at) & 0x0f);
    at += 2 + 4 + length;
  }
  return opcodes;
}
