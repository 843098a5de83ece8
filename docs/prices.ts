/** A list price of us-east-1, without free tiers and discounts. */
export interface Price {
  readonly usd: number;
  readonly per: string;
  /** A page whose text states this very number. AWS's own pages fill theirs in by script. */
  readonly source: string;
  /** When that page was written, as far as it says; undefined: no page was found that states the number. */
  readonly asOf: string | undefined;
}

const AIRBYTE = { source: "https://airbyte.com/data-engineering-resources/dynamodb-pricing", asOf: "2025-07" };
const FARGATE = { source: "https://www.vantage.sh/blog/fargate-pricing", asOf: "undated" };
const CLOUDWATCH = {
  source: "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/",
  asOf: "2026-06",
};

/** On-demand DynamoDB as it is since November 2024, when it was halved. */
export const PRICE_LIST = {
  writeMillion: { usd: 0.625, per: "million write request units", ...AIRBYTE },
  readMillion: { usd: 0.125, per: "million read request units", ...AIRBYTE },
  writeUnitHour: {
    usd: 0.00065,
    per: "provisioned write unit and hour",
    source: "https://zeonedge.com/en/blog/dynamodb-cost-optimization-on-demand-provisioned-dax-single-table",
    asOf: "undated",
  },
  storageGbMonth: {
    usd: 0.25,
    per: "GB and month in a table",
    source: "https://aws.amazon.com/dynamodb/pricing/",
    asOf: "undated",
  },
  backupGbMonth: {
    usd: 0.2,
    per: "GB and month of point-in-time recovery",
    source: "https://finops.com.py/services/dynamodb/backups",
    asOf: "undated",
  },
  arm64VcpuHour: { usd: 0.03238, per: "vCPU and hour, Fargate on arm64", ...FARGATE },
  arm64GbHour: { usd: 0.00356, per: "GB and hour, Fargate on arm64", ...FARGATE },
  publicIpHour: {
    usd: 0.005,
    per: "public IPv4 address and hour",
    source: "https://www.doit.com/aws-public-ipv4-price-increase-the-complete-guide/",
    asOf: "2024-02",
  },
  lambdaMillion: {
    usd: 0.2,
    per: "million invocations",
    source: "https://git.mcrn.ar/mariano/lambda_local_runner/src/branch/main/docs/lambdas-md/lambda-13-cost.md",
    asOf: "2026-05",
  },
  lambdaGbSecond: {
    usd: 0.0000133334,
    per: "GB-second, Lambda on arm64",
    source: "https://cloudchipr.com/blog/aws-lambda-pricing",
    asOf: "2024",
  },
  sqsMillion: {
    usd: 0.4,
    per: "million requests, standard queue",
    source: "https://cloudburn.io/blog/amazon-sqs-pricing",
    asOf: "2026-03",
  },
  metricMonth: {
    usd: 0.3,
    per: "custom metric and month",
    source: "https://signoz.io/guides/cloudwatch-pricing",
    asOf: "2026-02",
  },
  dashboardMonth: { usd: 3, per: "dashboard and month", ...CLOUDWATCH },
  logGb: { usd: 0.5, per: "GB of logs taken in", ...CLOUDWATCH },
  alarmMonth: {
    usd: 0.1,
    per: "alarm and month",
    source: "https://aws.amazon.com/cloudwatch/pricing/",
    asOf: undefined,
  },
  putMetricThousand: {
    usd: 0.01,
    per: "thousand requests of PutMetricData",
    source: "https://aws.amazon.com/cloudwatch/pricing/",
    asOf: undefined,
  },
} as const satisfies Readonly<Record<string, Price>>;

export type PriceName = keyof typeof PRICE_LIST;

/** The numbers alone, in US dollars. */
export const PRICES = Object.fromEntries(Object.entries(PRICE_LIST).map(([name, { usd }]) => [name, usd])) as Readonly<
  Record<PriceName, number>
>;
