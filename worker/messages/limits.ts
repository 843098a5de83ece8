/** Most items of one BatchWriteItem request, by DynamoDB. */
export const MAX_BATCH_ITEMS = 25;

/**
 * Item bytes of one request. DynamoDB takes 16 MB; a smaller request stays inside its attempt timeout on a slow link,
 * holds up other lanes for less time, and leaves room for base64 and JSON escapes (up to six-fold) on the wire.
 */
export const MAX_BATCH_BYTES = 1_572_864;

/** Largest item that is written whole: DynamoDB's 400 KB less 2 KB of slack for its own rounding. */
export const MAX_ITEM_BYTES = 400 * 1024 - 2048;

/** Payload bytes of one part of a larger message; at most three less where a multi-byte character would be cut. */
export const PART_BYTES = 350 * 1024;

/** Full jitter below a bound that doubles from the base with every failure in a row, up to the cap. */
export const RETRY_BASE_MS = 50;
export const RETRY_CAP_MS = 5000;

/** Share of the writer's bounds above which a lane is paused by itself, so that a flood stops itself before others. */
export const LANE_SHARE = 1 / 8;

/** Share of a bound down to which the pending rows must fall before paused sockets are read again. */
export const LOW_WATER = 1 / 2;
