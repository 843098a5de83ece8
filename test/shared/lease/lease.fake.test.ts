import { fakeConnections } from "../../support/fake-connections.ts";
import { leaseContract } from "./contract.ts";

leaseContract("fake", () => Promise.resolve({ table: fakeConnections().table, close: () => Promise.resolve() }));
