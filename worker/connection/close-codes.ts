/** How a socket or a dial ended, as far as the other side said. */
export interface SocketEnd {
  /** WebSocket close code; 1006 when the TCP connection just ended. Absent when the handshake never finished. */
  readonly code?: number;
  readonly reason?: string;
  /** HTTP status, when the handshake was answered by something else than 101. */
  readonly httpStatus?: number;
  readonly retryAfterMs?: number;
  /** Our own verdict: handshake timeout, idle, network error, message too large … */
  readonly error?: string;
}

/**
 * What to do next. `park`: no retry mends it, people must look. `busy`: later, with patience. `again`: routine, dial at
 * once. `retry`: back off with jitter.
 */
export type Verdict = "park" | "busy" | "again" | "retry";

/** Policy violation, and 4004 (authentication failed) as several feeds use it; 1009: their messages exceed our limit. */
const FATAL_CODES = new Set([1002, 1003, 1007, 1008, 1009, 4004]);
const BUSY_CODES = new Set([1013]);
/** Normal closure, going away, service restart: the upstream works, this socket is over. */
const ROUTINE_CODES = new Set([1000, 1001, 1012]);

/** Bad request, unauthorised, forbidden, not found, gone: the same dial gets the same answer. */
const FATAL_STATUS = new Set([400, 401, 403, 404, 405, 410]);
const BUSY_STATUS = new Set([429, 503]);

export function verdictOf(end: SocketEnd): Verdict {
  if (end.httpStatus !== undefined) {
    if (FATAL_STATUS.has(end.httpStatus)) return "park";
    return BUSY_STATUS.has(end.httpStatus) ? "busy" : "retry";
  }
  if (end.code === undefined) return "retry";
  if (FATAL_CODES.has(end.code)) return "park";
  if (BUSY_CODES.has(end.code)) return "busy";
  return ROUTINE_CODES.has(end.code) ? "again" : "retry";
}

/** One line for `last_error` and logs. */
export function describeEnd(end: SocketEnd): string {
  if (end.httpStatus !== undefined) return `handshake answered with HTTP ${end.httpStatus}`;
  const parts = [
    end.code === undefined ? undefined : `closed with ${end.code}`,
    end.reason === "" ? undefined : end.reason,
    end.error,
  ];
  return parts.filter((part) => part !== undefined).join(": ") || "ended";
}
