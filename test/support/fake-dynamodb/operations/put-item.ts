import type { PutItemCommandInput, PutItemCommandOutput } from "@aws-sdk/client-dynamodb";
import { itemFromSdk } from "../values.ts";
import { assertParameters, CONDITIONAL_PARAMETERS, type Store } from "./context.ts";
import { replaceItem } from "./replace-item.ts";

export function putItem(store: Store, input: PutItemCommandInput): PutItemCommandOutput {
  assertParameters("PutItem", input, [...CONDITIONAL_PARAMETERS, "Item"]);
  const table = store.table(input.TableName);
  const item = itemFromSdk(input.Item ?? {});
  const key = table.keyOfItem(item);
  table.checkStorable(item);
  return replaceItem(table, key, item, input);
}
