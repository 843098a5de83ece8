import type { DeleteItemCommandInput, PutItemCommandInput, PutItemCommandOutput } from "@aws-sdk/client-dynamodb";
import { consumedCapacity } from "../capacity.ts";
import { metadata, validationError } from "../errors.ts";
import type { PrimaryKey, Table } from "../table.ts";
import { itemToSdk, type Item } from "../values.ts";
import { assertCondition, conditionOf } from "./context.ts";

/** What PutItem (an item) and DeleteItem (undefined) have in common. */
export function replaceItem(
  table: Table,
  key: PrimaryKey,
  next: Item | undefined,
  input: PutItemCommandInput | DeleteItemCommandInput,
): PutItemCommandOutput {
  const { placeholders, condition } = conditionOf(input);
  placeholders.assertAllUsed(condition !== undefined);
  const returnsOld = input.ReturnValues === "ALL_OLD";
  if (!returnsOld && (input.ReturnValues ?? "NONE") !== "NONE") {
    throw validationError("ReturnValues can only be ALL_OLD or NONE");
  }
  const old = table.get(key);
  assertCondition(condition, old, input);
  const units = table.write(key, next);
  const capacity = consumedCapacity(input.ReturnConsumedCapacity, table.schema.name, units);
  return {
    ...(returnsOld && old !== undefined ? { Attributes: itemToSdk(old) } : {}),
    ...(capacity === undefined ? {} : { ConsumedCapacity: capacity }),
    $metadata: metadata(200),
  };
}
