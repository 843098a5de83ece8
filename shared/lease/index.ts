/** Every operation on a lease. No other file of the project writes these attributes. */
export { acquire, type Acquired, type AcquireRequest } from "./acquire.ts";
export { renew, type Renewed, type RenewRequest } from "./renew.ts";
export { release, FREE_NOW_MS, type ReleaseRequest } from "./release.ts";
export { park, type ParkRequest } from "./park.ts";
export { releaseOf, type ReleasedOf, type ReleaseOfRequest } from "./release-of.ts";
export { start, stop, deleteConnection, type DeleteRequest, type KindChange, type StartRequest } from "./producer.ts";
export { mend, type MendRequest } from "./mend.ts";
export type { Checkpoint, Holder } from "./holder.ts";
export type { CallOptions, LeaseTable } from "./context.ts";
export type { Held, Lost, LostReason, Outcome, Unknown, UnknownReason } from "./outcome.ts";
export { unknown } from "./outcome.ts";
export { isRejectedItem } from "./classify.ts";
export { Deadline } from "./deadline.ts";
