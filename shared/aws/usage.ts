import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";

/** What DynamoDB says that requests cost, as far as its answers tell: a failed condition reports nothing. */
export interface DynamoDbUsage {
  requests: number;
  readUnits: number;
  writeUnits: number;
}

interface CapacityOutput {
  ConsumedCapacity?: Capacity | Capacity[];
}
interface Capacity {
  CapacityUnits?: number;
  ReadCapacityUnits?: number;
  WriteCapacityUnits?: number;
}

const WRITES = /^(Update|Put|Delete|BatchWrite|TransactWrite)/;

/** Adds up requests (each attempt) and consumed units of `client` into `usage`. Asking for them costs nothing. */
export function countUsage(client: DynamoDBClient, usage: DynamoDbUsage): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const input = args.input as { ReturnConsumedCapacity?: string };
      input.ReturnConsumedCapacity ??= "TOTAL";
      const result = await next(args);
      const capacity = (result.output as CapacityOutput).ConsumedCapacity;
      const writes = WRITES.test(context.commandName ?? "");
      for (const one of capacity === undefined ? [] : Array.isArray(capacity) ? capacity : [capacity]) {
        if (writes) usage.writeUnits += one.CapacityUnits ?? 0;
        else usage.readUnits += one.CapacityUnits ?? 0;
      }
      return result;
    },
    { step: "initialize", name: "wsFleetUsage" },
  );
  client.middlewareStack.add(
    (next) => (args) => {
      usage.requests += 1;
      return next(args);
    },
    { step: "finalizeRequest", name: "wsFleetRequests", priority: "low" },
  );
}
