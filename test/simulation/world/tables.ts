import path from "node:path";
import { readServerlessFile } from "../../../local/serverless-file.ts";
import { CONNECTION } from "../../../shared/connection/attributes.ts";
import type { RawItem } from "../../../shared/connection/item.ts";
import { TRUE_EPOCH_MS } from "../engine/machine.ts";

const DEFINITIONS = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../../..") }).tables;
/** The tables as they are deployed. */
export const CONNECTIONS = definition("ConnectionsTable");
export const MESSAGES = definition("MessagesTable");

/** One line of a history. */
export function describe(item: RawItem | undefined): string {
  if (item === undefined) return "item deleted";
  const expires = Number(item[CONNECTION.expiresAtMs]?.N ?? NaN);
  const seconds = expires === 0 ? "0" : `${((expires - TRUE_EPOCH_MS) / 1000).toFixed(3)} s`;
  return (
    `item: ${item[CONNECTION.desiredState]?.S ?? "?"} owner ${item[CONNECTION.owner]?.S ?? "-"} ` +
    `epoch ${item[CONNECTION.epoch]?.N ?? "-"} expires ${seconds} last_seq ${item[CONNECTION.lastSeq]?.N ?? "-"}`
  );
}

function definition(logicalId: string): (typeof DEFINITIONS)[number] {
  const found = DEFINITIONS.find((table) => table.logicalId === logicalId);
  if (found === undefined) throw new Error(`serverless.yml has no ${logicalId}`);
  return found;
}
