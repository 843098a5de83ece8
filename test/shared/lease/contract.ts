import { after, before, describe } from "node:test";
import type { LeaseTable } from "../../../shared/lease/index.ts";
import { acquireContract } from "./contract/acquire.ts";
import { freeContract } from "./contract/free.ts";
import { livesContract } from "./contract/lives.ts";
import { mendContract } from "./contract/mend.ts";
import { producerContract } from "./contract/producer.ts";
import { releaseOfContract } from "./contract/release-of.ts";
import { renewContract } from "./contract/renew.ts";
import { ContractStore } from "./contract/store.ts";

export interface MadeTable {
  /** Empty, with the keys and indexes of the `connections` table; indexes that do not lag. */
  readonly table: LeaseTable;
  close(): Promise<void>;
}

/** What every lease operation promises, whatever DynamoDB it runs against. */
export function leaseContract(name: string, makeTable: () => Promise<MadeTable>): void {
  describe(`lease contract: ${name}`, () => {
    let made: MadeTable | undefined;
    const store = new ContractStore(async () => (made = await makeTable()).table);
    before(() => store.open());
    after(() => made?.close());

    acquireContract(store);
    renewContract(store);
    freeContract(store);
    releaseOfContract(store);
    producerContract(store);
    mendContract(store);
    livesContract(store);
  });
}
