import { DEFINITIONS } from "../shared/config/definitions.ts";
import { METRIC_UNITS } from "../shared/metrics/names.ts";
import { PRICE_LIST, PRICES, type Price } from "./prices.ts";
import { monthlyCosts, provisionedRenewals, type Load } from "./costs.ts";

/** 1,000 connections with the defaults, each storing a small message every five seconds. */
export const EXAMPLE: Load = {
  connections: 1000,
  heartbeatMs: Number(DEFINITIONS.heartbeatMs.default),
  connectionsPerTask: Number(DEFINITIONS.targetConnections.default),
  taskVcpu: 0.5,
  taskGb: 1,
  messagesPerSecond: 0.2,
  messageBytes: 500,
  changesPerDay: 4,
  metricsMs: Number(DEFINITIONS.metricsMs.default),
  metrics: Object.keys(METRIC_UNITS).length,
  alarms: 12,
};

const money = (dollars: number): string =>
  dollars === 0 ? "0" : dollars < 10 ? dollars.toFixed(2) : dollars.toFixed(0);

/** Without an exponent. */
const digits = (usd: number): string => usd.toFixed(10).replace(/\.?0+$/, "");

/** The table and the sentences around it that carry numbers, as Markdown. */
export function costSection(load: Load = EXAMPLE): string {
  const lines = monthlyCosts(load);
  const total = lines.reduce((sum, line) => sum + line.cost, 0);
  const [renewals] = lines;
  const slower = monthlyCosts({ ...load, heartbeatMs: 2 * load.heartbeatMs })[0];
  return [
    "| what | how it comes about | US$ a month |",
    "| --- | --- | --: |",
    ...lines.map(({ what, how, cost }) => `| ${what} | ${how} | ${money(cost)} |`),
    `| **all** | | **${money(total)}** |`,
    "",
    `Renewals are the bill: ${money(renewals?.cost ?? 0)} of ${money(total)}. On provisioned capacity, which their even load`,
    `fills well, they cost ${money(provisionedRenewals(load))}; with a heartbeat of ${(2 * load.heartbeatMs) / 1000} s and a lease to match,`,
    `${money(slower?.cost ?? 0)} on demand.`,
    "",
    "An item above 1 KB doubles the price of its renewals: keep `upstream` small. Not in it: storage",
    `($${PRICES.storageGbMonth} per GB and month, $${PRICES.backupGbMonth} more for point-in-time recovery), requests to KMS for the tables' keys,`,
    "and data that upstreams send through public addresses, which is free, or through a NAT, which is not. The dashboard",
    "shows what the tables and tasks cost at the moment.",
    "",
    "The prices, each with a page that states it and that page's date. Check those that matter to you on AWS's own pages:",
    "a price moves, and other regions have others.",
    "",
    "| US$ | per | stated by | as of |",
    "| --: | --- | --- | --- |",
    ...Object.values<Price>(PRICE_LIST).map(
      ({ usd, per, source, asOf }) =>
        `| ${digits(usd)} | ${per} | [${new URL(source).host}](${source}) | ${asOf ?? "not compared"} |`,
    ),
  ].join("\n");
}
