import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { UnsupportedByFake } from "./errors.ts";
import { batchGetItem } from "./operations/batch-get-item.ts";
import { batchWriteItem } from "./operations/batch-write-item.ts";
import type { Store } from "./operations/context.ts";
import { deleteItem } from "./operations/delete-item.ts";
import { getItem } from "./operations/get-item.ts";
import { putItem } from "./operations/put-item.ts";
import { query } from "./operations/query.ts";
import { scan } from "./operations/scan.ts";
import { updateItem } from "./operations/update-item.ts";
import type { Execute } from "./send.ts";

export interface Request {
  readonly operation: string;
  readonly input: object;
  readonly table: string;
  readonly execute: Execute;
}

/** Binds a command of the SDK to a store. The input is copied: what is sent later is what was sent, as over a wire. */
export function requestOf(command: unknown, store: Store): Request {
  if (command instanceof UpdateItemCommand) return single("UpdateItem", command.input, store, updateItem);
  if (command instanceof PutItemCommand) return single("PutItem", command.input, store, putItem);
  if (command instanceof DeleteItemCommand) return single("DeleteItem", command.input, store, deleteItem);
  if (command instanceof GetItemCommand) return single("GetItem", command.input, store, getItem);
  if (command instanceof QueryCommand) return single("Query", command.input, store, query);
  if (command instanceof ScanCommand) return single("Scan", command.input, store, scan);
  if (command instanceof BatchWriteItemCommand) return batch("BatchWriteItem", command.input, store, batchWriteItem);
  if (command instanceof BatchGetItemCommand) return batch("BatchGetItem", command.input, store, batchGetItem);
  throw new UnsupportedByFake(command instanceof Object ? command.constructor.name : String(command));
}

function single<I extends { TableName?: string | undefined }>(
  operation: string,
  given: I,
  store: Store,
  run: (store: Store, input: I) => object,
): Request {
  const input = structuredClone(given);
  const execute: Execute = (unprocessed) => {
    if (unprocessed !== undefined) throw new Error(`fault: unprocessed applies to batches only, not to ${operation}`);
    return run(store, input);
  };
  return { operation, input, table: input.TableName ?? "", execute };
}

function batch<I extends { RequestItems: Record<string, unknown> | undefined }>(
  operation: string,
  given: I,
  store: Store,
  run: (store: Store, input: I, unprocessed?: (index: number) => boolean) => object,
): Request {
  const input = structuredClone(given);
  const [table = ""] = Object.keys(input.RequestItems ?? {});
  return { operation, input, table, execute: (unprocessed) => run(store, input, unprocessed) };
}
