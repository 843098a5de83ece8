import { MESSAGE, type MessageRow } from "../../shared/messages/row.ts";

/** The most bytes that DynamoDB counts for one number: 38 digits in pairs, an exponent and a sign. */
const NUMBER_BYTES = 21;
/** `binary`; `text` is shorter. */
const OPCODE_BYTES = 6;
const SHA256_BYTES = 64;

const bytesOf = (text: string): number => Buffer.byteLength(text);

const ROW_BYTES =
  bytesOf(MESSAGE.connectionId) +
  bytesOf(MESSAGE.seq) +
  bytesOf(MESSAGE.payload) +
  bytesOf(MESSAGE.opcode) +
  bytesOf(MESSAGE.receivedAtMs) +
  bytesOf(MESSAGE.epoch) +
  bytesOf(MESSAGE.expiresAt) +
  OPCODE_BYTES +
  4 * NUMBER_BYTES;

/**
 * Bytes of a row as DynamoDB counts an item: names plus values, text as UTF-8, numbers by their digits. Numbers are
 * taken at their largest, so the true size is up to some 70 bytes less.
 */
export function rowBytes(row: MessageRow): number {
  return (
    ROW_BYTES +
    bytesOf(row.connectionId) +
    (typeof row.payload === "string" ? bytesOf(row.payload) : row.payload.byteLength) +
    (row.cursor === undefined ? 0 : bytesOf(MESSAGE.cursor) + bytesOf(row.cursor))
  );
}

/** Upper bound of a part's item with `payloadBytes` of payload. */
export function partBytes(row: MessageRow, payloadBytes: number): number {
  return ROW_BYTES + bytesOf(row.connectionId) + NUMBER_BYTES + payloadBytes;
}

/** Upper bound of the head item of a message that is stored in parts. */
export function headBytes(row: MessageRow): number {
  return (
    rowBytes({ ...row, payload: "" }) + bytesOf(MESSAGE.parts) + NUMBER_BYTES + bytesOf(MESSAGE.sha256) + SHA256_BYTES
  );
}
