import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EXAMPLE } from "../../docs/cost-table.ts";
import { monthlyCosts, provisionedRenewals } from "../../docs/costs.ts";
import { PRICE_LIST, PRICES, type Price, type PriceName } from "../../docs/prices.ts";

const cost = (load: typeof EXAMPLE, what: string): number => {
  const line = monthlyCosts(load).find((one) => one.what === what);
  assert.ok(line, what);
  return line.cost;
};
const about = (actual: number, expected: number): void => {
  assert.ok(Math.abs(actual - expected) < 0.01 * expected, `${actual} is about ${expected}`);
};

describe("costs of a month", () => {
  it("are what a pocket calculator says", () => {
    // 200 renewals a second × 3 units × 2,628,000 s = 1,576.8 million units at $0.625.
    about(cost(EXAMPLE, "Leases: renewals"), 985.5);
    // 200 rows a second × 2,628,000 s = 525.6 million units.
    about(cost(EXAMPLE, "Messages"), 328.5);
    // Two tasks × 730 h × ($0.01619 + $0.00356 + $0.005).
    about(cost(EXAMPLE, "Tasks"), 36.14);
    // 600 units × $0.00065 × 730 h.
    about(provisionedRenewals(EXAMPLE), 284.7);
  });

  it("grow with the connections and shrink with a slower heartbeat", () => {
    about(cost({ ...EXAMPLE, connections: 3000 }, "Leases: renewals"), 3 * 985.5);
    about(cost({ ...EXAMPLE, heartbeatMs: 10_000 }, "Leases: renewals"), 985.5 / 2);
    about(cost({ ...EXAMPLE, connections: 1401 }, "Tasks"), (cost(EXAMPLE, "Tasks") * 3) / 2);
  });

  it("charge a message by started kilobytes", () => {
    about(cost({ ...EXAMPLE, messageBytes: 1025 }, "Messages"), 2 * 328.5);
  });

  it("charge nothing for the stream, and little for reading leases", () => {
    assert.equal(cost(EXAMPLE, "Stream"), 0);
    assert.ok(cost(EXAMPLE, "Leases: reads") < 1);
  });
});

describe("prices", () => {
  const entries = Object.entries(PRICE_LIST) as [PriceName, Price][];

  it("stand beside a page that states them and its date", () => {
    for (const [name, { usd, source, asOf }] of entries) {
      assert.ok(usd > 0, name);
      assert.equal(new URL(source).protocol, "https:", name);
      assert.match(asOf ?? "undated", /^(20\d\d(-\d\d)?|undated)$/, name);
    }
  });

  it("that no page was found for are less than half a percent of the bill", () => {
    const total = (prices: typeof PRICES): number =>
      monthlyCosts(EXAMPLE, prices).reduce((sum, line) => sum + line.cost, 0);
    const unstated = entries.filter(([, { asOf }]) => asOf === undefined).map(([name]) => [name, 0]);
    assert.ok(unstated.length > 0, "otherwise this test is no longer needed");
    const without = total({ ...PRICES, ...(Object.fromEntries(unstated) as Partial<typeof PRICES>) });
    assert.ok(total(PRICES) - without < 0.005 * total(PRICES));
  });
});
