import type { InboundFrame, InboundKind } from "../../upstream/record.ts";

const MAX_HEAD_BYTES = 16 * 1024;
const KINDS: Readonly<Record<number, InboundKind>> = { 1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong" };
const MASK_BYTES = 4;

/**
 * Reads along what a WebSocket client says: the path that it asks for, and when each of its frames passed (RFC 6455,
 * section 5.2). How long the network holds a frame back afterwards is not the client's doing.
 */
export class FrameWatch {
  /** Of the request; undefined until it was seen. */
  path: string | undefined;
  readonly frames: InboundFrame[] = [];
  /** Bytes of a head or a frame header that is not complete. */
  #rest: Buffer = Buffer.alloc(0);
  #inFrames = false;
  /** Of the frame that passes. */
  #payloadLeft = 0;

  /** @throws for anything that is not a request of at most 16 KB, followed by frames */
  feed(chunk: Buffer, atMs: number): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (!this.#inFrames) {
      const end = bytes.indexOf("\r\n\r\n");
      if (end < 0) {
        if (bytes.length > MAX_HEAD_BYTES) throw new Error(`a request must have at most ${MAX_HEAD_BYTES} bytes`);
        this.#rest = Buffer.from(bytes);
        return;
      }
      this.path = /^GET (?<path>\S+) HTTP/u.exec(bytes.toString("latin1", 0, end))?.groups?.["path"];
      if (this.path === undefined) throw new Error("a request must begin with GET and a path");
      this.#inFrames = true;
      bytes = bytes.subarray(end + 4);
    }
    this.#rest = Buffer.from(this.#frames(bytes, atMs));
  }

  /** @returns what is left over: the beginning of a header */
  #frames(bytes: Buffer, atMs: number): Buffer {
    let at = 0;
    for (;;) {
      const payload = Math.min(this.#payloadLeft, bytes.length - at);
      this.#payloadLeft -= payload;
      at += payload;
      const header = headerOf(bytes.subarray(at));
      if (header === undefined) return bytes.subarray(at);
      const kind = KINDS[header.opcode];
      // A continuation belongs to a frame that was told already.
      if (kind !== undefined) this.frames.push({ kind, atMs });
      this.#payloadLeft = header.payloadBytes;
      at += header.bytes;
    }
  }
}

function headerOf(bytes: Buffer): { opcode: number; bytes: number; payloadBytes: number } | undefined {
  if (bytes.length < 2) return undefined;
  const length = bytes.readUInt8(1) & 0x7f;
  const extended = length === 126 ? 2 : length === 127 ? 8 : 0;
  const mask = (bytes.readUInt8(1) & 0x80) === 0 ? 0 : MASK_BYTES;
  if (bytes.length < 2 + extended + mask) return undefined;
  const payloadBytes =
    extended === 0 ? length : extended === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  return { opcode: bytes.readUInt8(0) & 0x0f, bytes: 2 + extended + mask, payloadBytes };
}
