import { DeleteItemCommand, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import type { RawItem } from "../../../../shared/connection/item.ts";
import type { LeaseTable } from "../../../../shared/lease/index.ts";

/** A connections table under test, and how a test looks behind the operations' back. */
export class ContractStore {
  readonly #makeTable: () => Promise<LeaseTable>;
  #table: LeaseTable | undefined;
  #ids = 0;

  constructor(makeTable: () => Promise<LeaseTable>) {
    this.#makeTable = makeTable;
  }

  async open(): Promise<void> {
    this.#table = await this.#makeTable();
  }

  get table(): LeaseTable {
    if (this.#table === undefined) throw new Error("the store is not open");
    return this.#table;
  }

  /** Never given out before, so that the tests of one table do not meet. */
  newId(prefix = "c"): string {
    return `${prefix}-${++this.#ids}`;
  }

  /** Stores an item as it stands, whatever the protocol would say. */
  async put(item: RawItem): Promise<string> {
    await this.table.client.send(new PutItemCommand({ TableName: this.table.tableName, Item: item }));
    return item["connection_id"]?.S ?? "";
  }

  async get(connectionId: string): Promise<RawItem | undefined> {
    const answer = await this.table.client.send(
      new GetItemCommand({ TableName: this.table.tableName, Key: { connection_id: { S: connectionId } } }),
    );
    return answer.Item;
  }

  async remove(connectionId: string): Promise<void> {
    await this.table.client.send(
      new DeleteItemCommand({ TableName: this.table.tableName, Key: { connection_id: { S: connectionId } } }),
    );
  }

  /** Runs `operation` and asserts that it changed nothing of the item, its absence included. */
  async unchanged<T>(connectionId: string, operation: () => Promise<T>): Promise<T> {
    const before = await this.get(connectionId);
    const result = await operation();
    assert.deepEqual(await this.get(connectionId), before, "a refused write must change nothing");
    return result;
  }
}
