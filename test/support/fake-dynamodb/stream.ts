import type { AttributeValue, StreamViewType } from "@aws-sdk/client-dynamodb";
import { itemBytes, itemToSdk, type Item } from "./values.ts";

/**
 * One change, in the shape in which Lambda receives it from DynamoDB Streams; only binary values stay bytes.
 * `ApproximateCreationDateTime` is in seconds since the epoch.
 */
export interface StreamRecord {
  eventID: string;
  eventName: "INSERT" | "MODIFY" | "REMOVE";
  eventVersion: string;
  eventSource: "aws:dynamodb";
  dynamodb: {
    ApproximateCreationDateTime: number;
    Keys: Record<string, AttributeValue>;
    NewImage?: Record<string, AttributeValue>;
    OldImage?: Record<string, AttributeValue>;
    SequenceNumber: string;
    SizeBytes: number;
    StreamViewType: StreamViewType;
  };
}

export type StreamListener = (record: StreamRecord, tableName: string) => void;

export interface Change {
  readonly table: string;
  readonly viewType: StreamViewType;
  readonly keys: Item;
  readonly oldItem: Item | undefined;
  readonly newItem: Item | undefined;
}

const FIRST_SEQUENCE_NUMBER = 100_000_000_000_000_000_001n;

/** Hands every change to every listener in the order of the writes, even when a listener itself writes. */
export class ChangeStream {
  readonly #nowSeconds: () => number;
  readonly #listeners = new Set<StreamListener>();
  readonly #undelivered: { record: StreamRecord; table: string }[] = [];
  #delivering = false;
  #count = 0n;

  constructor(nowSeconds: () => number) {
    this.#nowSeconds = nowSeconds;
  }

  /** Returns the function that ends the subscription. */
  subscribe(listener: StreamListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  publish(change: Change): void {
    this.#undelivered.push({ record: this.#recordOf(change), table: change.table });
    if (this.#delivering) return;
    this.#delivering = true;
    try {
      for (let next = this.#undelivered.shift(); next !== undefined; next = this.#undelivered.shift()) {
        for (const listener of this.#listeners) listener(next.record, next.table);
      }
    } finally {
      this.#delivering = false;
    }
  }

  #recordOf({ viewType, keys, oldItem, newItem }: Change): StreamRecord {
    const number = this.#count++;
    const showsNew = viewType === "NEW_IMAGE" || viewType === "NEW_AND_OLD_IMAGES";
    const showsOld = viewType === "OLD_IMAGE" || viewType === "NEW_AND_OLD_IMAGES";
    const images = [keys, ...(showsNew && newItem ? [newItem] : []), ...(showsOld && oldItem ? [oldItem] : [])];
    return {
      eventID: number.toString(16).padStart(32, "0"),
      eventName: oldItem === undefined ? "INSERT" : newItem === undefined ? "REMOVE" : "MODIFY",
      eventVersion: "1.1",
      eventSource: "aws:dynamodb",
      dynamodb: {
        ApproximateCreationDateTime: this.#nowSeconds(),
        Keys: itemToSdk(keys),
        ...(showsNew && newItem !== undefined ? { NewImage: itemToSdk(newItem) } : {}),
        ...(showsOld && oldItem !== undefined ? { OldImage: itemToSdk(oldItem) } : {}),
        SequenceNumber: (FIRST_SEQUENCE_NUMBER + number).toString(),
        SizeBytes: images.reduce((bytes, image) => bytes + itemBytes(image), 0),
        StreamViewType: viewType,
      },
    };
  }
}
