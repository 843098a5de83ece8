import type { DeleteItemCommandInput, DeleteItemCommandOutput } from "@aws-sdk/client-dynamodb";
import { assertParameters, CONDITIONAL_PARAMETERS, type Store } from "./context.ts";
import { replaceItem } from "./replace-item.ts";

export function deleteItem(store: Store, input: DeleteItemCommandInput): DeleteItemCommandOutput {
  assertParameters("DeleteItem", input, [...CONDITIONAL_PARAMETERS, "Key"]);
  const table = store.table(input.TableName);
  return replaceItem(table, table.parseKey(input.Key), undefined, input);
}
