import type { RawItem } from "../../shared/connection/item.ts";
import type { Checkpoint, Lost } from "../../shared/lease/index.ts";
import type { Holding } from "./holding.ts";

/** What a holding's connection is asked and told. */
export interface KeepEvents {
  /** The gap-free durable prefix to write with the next renewal, or undefined when nothing moved. */
  checkpoint(): Checkpoint | undefined;
  /** True once the connection was healthy for long enough to forget its failures. */
  clearFailures(): boolean;
  /** The item after a renewal: desired state and settings as they are now. */
  onRenewed(item: RawItem): void;
  /** Another epoch wrote, or the item is gone. The holding has ended; nothing may be sent. */
  onLost(lost: Lost): void;
  /** The local deadline passed. The holding must not act; the keeper goes on until its release is settled. */
  onFenced(): void;
}

export type Ending =
  | { readonly kind: "release"; readonly checkpoint: Checkpoint | undefined }
  | {
      readonly kind: "park";
      readonly checkpoint: Checkpoint | undefined;
      readonly parkMs: number;
      readonly error: string;
    };

/**
 * How leases are kept alive. The seam between the connections and the way of renewing: a heartbeat per connection now;
 * a heartbeat per worker would come in behind the same interface.
 */
export interface LeaseKeeper {
  keep(holding: Holding, events: KeepEvents): void;
  /**
   * Ends a holding: from this call on it does not act. Resolves once the store said held or lost, however often it
   * takes. One lease operation per connection at a time: a renewal in flight is awaited first.
   */
  end(holding: Holding, ending: Ending): Promise<"held" | "lost">;
  /** The deadline was seen to have passed at a side effect, before any timer noticed. */
  fence(holding: Holding): void;
}
