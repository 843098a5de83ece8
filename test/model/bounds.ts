import type { AttributeValue } from "@aws-sdk/client-dynamodb";

/** A request of the SDK, as far as the lease operations fill it: what a planted fault may change. */
export interface WriteInput {
  ConditionExpression?: string | undefined;
  UpdateExpression?: string | undefined;
  ExpressionAttributeValues?: Record<string, AttributeValue> | undefined;
}

/** Mistakes in what a worker concludes; every one is off in the real protocol. */
export interface WorkerMistakes {
  /** The local deadline is counted from the answer instead of from before the request. */
  readonly deadlineFromAnswer: boolean;
  /** A renewal without an answer extends the deadline all the same. */
  readonly extendsUnanswered: boolean;
  /** A request without an answer counts as a refusal. */
  readonly unknownIsLost: boolean;
  /** An item that names the worker counts as its own success, whatever expiry it shows. */
  readonly anyExpiryIsMine: boolean;
  /** A refused acquire counts as a held lease: the hint decides, not the write. */
  readonly hintIsOwnership: boolean;
  /** The worker goes on acting until its release is confirmed. */
  readonly actsUntilReleased: boolean;
  /** A holder does not notice that its connection was stopped. */
  readonly ignoresStop: boolean;
}

/** What is explored. Times are in ticks; a tick stands for one second. */
export interface Bounds {
  readonly leaseTicks: number;
  /** The margin that the protocol has. */
  readonly marginTicks: number;
  readonly skewTicks: number;
  readonly parkTicks: number;
  /** How far the second worker's clock, and the producer's, is ahead of the first one's. */
  readonly aheadTicks: number;
  /** Requests that nobody waits for any more and that may still be applied, at once. */
  readonly lateRequests: number;
  /** Expiries that a holder may send within one tick; each is a millisecond higher than the one before. */
  readonly sentPerTick: number;
  /** Identities of dead processes that the item or a late request still names, at once. */
  readonly deadNames: number;
  /** With `last_seq` in holders' writes; it multiplies the states. */
  readonly checkpoints: boolean;
  /** With STOP, START and delete by the producer at any time; otherwise the connection is STARTED for ever. */
  readonly producer: boolean;
  /** An id that was deleted is acquired again only when the wall time, in seconds, is past every epoch of its first life. */
  readonly patientProducer: boolean;
  /**
   * Without the reductions that hold only while the rules do: answers may be read late even where that shows nothing
   * new, and the requests of ended holdings keep their times. For planted faults, and to check the reductions.
   */
  readonly unreduced: boolean;
  /** What an acquire leaves to the clocks' offset; the skew, except in a planted fault. */
  readonly acquireSkewTicks: number;
  readonly mistakes: WorkerMistakes;
  /** Changes the real request before it is evaluated. */
  readonly tamper: ((kind: RequestKind, input: WriteInput) => void) | undefined;
}

export type RequestKind = "acquire" | "renew" | "release" | "park" | "release-of" | "start" | "stop" | "delete";

export const NO_MISTAKES: WorkerMistakes = {
  deadlineFromAnswer: false,
  extendsUnanswered: false,
  unknownIsLost: false,
  anyExpiryIsMine: false,
  hintIsOwnership: false,
  actsUntilReleased: false,
  ignoresStop: false,
};

/**
 * The smallest numbers that keep every order of events: a lease of three ticks, of which the holder uses two, so that it
 * can renew between; margin and skew of one, so that clocks that are each off by the skew, in opposite directions, use
 * the tolerance up to the last tick.
 */
export const SMALL: Bounds = {
  leaseTicks: 3,
  marginTicks: 1,
  skewTicks: 1,
  parkTicks: 2,
  aheadTicks: 0,
  lateRequests: 1,
  sentPerTick: 2,
  deadNames: 1,
  checkpoints: false,
  producer: true,
  patientProducer: true,
  unreduced: false,
  acquireSkewTicks: 1,
  mistakes: NO_MISTAKES,
  tamper: undefined,
};
