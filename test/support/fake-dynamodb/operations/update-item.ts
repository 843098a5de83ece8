import type { UpdateItemCommandInput, UpdateItemCommandOutput } from "@aws-sdk/client-dynamodb";
import { consumedCapacity } from "../capacity.ts";
import { metadata, UnsupportedByFake, validationError } from "../errors.ts";
import { applyUpdate } from "../expression/apply-update.ts";
import { parseUpdate } from "../expression/parse-update.ts";
import { targetsOf, type Update } from "../expression/update.ts";
import { keyAttributes, type TableSchema } from "../schema.ts";
import { itemToSdk, type Item } from "../values.ts";
import { assertCondition, assertParameters, CONDITIONAL_PARAMETERS, conditionOf, type Store } from "./context.ts";

const TOO_LARGE = "Item size to update has exceeded the maximum allowed size";

/** Creates the item when it does not exist and the condition allows that, as DynamoDB does. */
export function updateItem(store: Store, input: UpdateItemCommandInput): UpdateItemCommandOutput {
  assertParameters("UpdateItem", input, [...CONDITIONAL_PARAMETERS, "Key", "UpdateExpression"]);
  const table = store.table(input.TableName);
  const { placeholders, condition } = conditionOf(input);
  const text = input.UpdateExpression;
  const update = text === undefined ? undefined : parseUpdate(text, placeholders);
  placeholders.assertAllUsed(condition !== undefined || update !== undefined);
  if (update !== undefined) assertNoKeyAttribute(update, table.schema);
  const key = table.parseKey(input.Key);

  const before = table.get(key);
  assertCondition(condition, before, input);
  const base = before ?? key.attributes;
  const after = update === undefined ? base : applyUpdate(base, update);
  table.checkStorable(after, TOO_LARGE);

  const returned = returnedItem(input.ReturnValues, before, after);
  const units = table.write(key, after);
  const capacity = consumedCapacity(input.ReturnConsumedCapacity, table.schema.name, units);
  return {
    ...(returned === undefined ? {} : { Attributes: itemToSdk(returned) }),
    ...(capacity === undefined ? {} : { ConsumedCapacity: capacity }),
    $metadata: metadata(200),
  };
}

function returnedItem(mode: string | undefined, before: Item | undefined, after: Item): Item | undefined {
  switch (mode ?? "NONE") {
    case "NONE":
      return undefined;
    case "ALL_OLD":
      return before;
    case "ALL_NEW":
      return after;
    default:
      throw new UnsupportedByFake(`UpdateItem with ReturnValues ${String(mode)}`);
  }
}

function assertNoKeyAttribute(update: Update, schema: TableSchema): void {
  const keys = keyAttributes(schema).map(({ name }) => name);
  const name = targetsOf(update)
    .map((path) => String(path[0]))
    .find((target) => keys.includes(target));
  if (name !== undefined) {
    throw validationError(
      `One or more parameter values were invalid: Cannot update attribute ${name}. This attribute is part of the key`,
    );
  }
}
