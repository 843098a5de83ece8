import { PRICES, type PriceName } from "./prices.ts";

/** What a fleet costs on AWS, from what it does. */
const MONTH_H = 730;
const MONTH_S = MONTH_H * 3600;

export interface Load {
  readonly connections: number;
  readonly heartbeatMs: number;
  readonly connectionsPerTask: number;
  readonly taskVcpu: number;
  readonly taskGb: number;
  /** Stored messages per connection and second, and bytes of one row. */
  readonly messagesPerSecond: number;
  readonly messageBytes: number;
  /** Hand-overs, starts and stops per connection and day. */
  readonly changesPerDay: number;
  readonly metricsMs: number;
  readonly metrics: number;
  readonly alarms: number;
}

export interface CostLine {
  readonly what: string;
  readonly how: string;
  /** US dollars a month. */
  readonly cost: number;
}

/** A renewal changes the orphan index's key: one unit for the item, a delete and a put in the index. */
const RENEWAL_UNITS = 1 + 2;
/** An acquire and a release each also change the owner index: delete or put of one entry. */
const CHANGE_UNITS = 1 + 2 + 1;
/** Index rows are about 150 bytes; a read unit is 8 KB when eventually consistent. */
const INDEX_ROW_BYTES = 150;
const EVENTUAL_READ_BYTES = 8192;

export function monthlyCosts(load: Load, prices: Readonly<Record<PriceName, number>> = PRICES): CostLine[] {
  const { connections } = load;
  const perMillion = (count: number, price: number): number => (count / 1e6) * price;
  const tasks = Math.ceil(connections / load.connectionsPerTask);

  const renewals = ((connections * 1000) / load.heartbeatMs) * MONTH_S;
  const changes = ((connections * load.changesPerDay) / 86_400) * MONTH_S;
  const messages = connections * load.messagesPerSecond * MONTH_S;
  const messageUnits = Math.ceil(load.messageBytes / 1024);
  const counts = (MONTH_S * 1000) / load.metricsMs;
  const countUnits = Math.ceil((connections * INDEX_ROW_BYTES) / EVENTUAL_READ_BYTES);
  // fleet-metrics and reconcile run for most of their minute, since they measure and sweep several times within it.
  const lambdaSeconds = (MONTH_S / 60) * (35 + 52) * 0.25;
  const invocations = (MONTH_S / 60) * 2 + MONTH_S / 900 + changes;
  const polls = tasks * (MONTH_S / 10) + changes * 3;
  const publishes = (tasks + 1) * counts;

  return [
    {
      what: "Leases: renewals",
      how: `${connections.toLocaleString("en-US")} every ${load.heartbeatMs / 1000} s, ${RENEWAL_UNITS} write units each`,
      cost: perMillion(renewals * RENEWAL_UNITS, prices.writeMillion),
    },
    {
      what: "Leases: starts, hand-overs, stops",
      how: `${load.changesPerDay} a day, two writes of ${CHANGE_UNITS} units each`,
      cost: perMillion(changes * 2 * CHANGE_UNITS, prices.writeMillion),
    },
    {
      what: "Leases: reads",
      how: "none by workers; the index is counted for metrics",
      cost: perMillion(counts * countUnits, prices.readMillion),
    },
    {
      what: "Messages",
      how: `${load.messagesPerSecond} a second of ${load.messageBytes} bytes, ${messageUnits} write unit each`,
      cost: perMillion(messages * messageUnits, prices.writeMillion),
    },
    { what: "Stream", how: "read by Lambda alone, which is free", cost: 0 },
    {
      what: "Functions",
      how: "two that run most of each minute with 256 MB; heartbeats invoke nothing",
      cost: lambdaSeconds * prices.lambdaGbSecond + perMillion(invocations, prices.lambdaMillion),
    },
    { what: "Queue", how: "long polls of 10 s by each task", cost: perMillion(polls, prices.sqsMillion) },
    {
      what: "Tasks",
      how: `${tasks} of ${load.taskVcpu} vCPU and ${load.taskGb} GB on Fargate arm64, each with a public address`,
      cost:
        tasks *
        MONTH_H *
        (load.taskVcpu * prices.arm64VcpuHour + load.taskGb * prices.arm64GbHour + prices.publicIpHour),
    },
    {
      what: "CloudWatch",
      how: `${load.metrics} metrics, ${load.alarms} alarms, one dashboard, 1 GB of logs per task`,
      cost:
        load.metrics * prices.metricMonth +
        load.alarms * prices.alarmMonth +
        prices.dashboardMonth +
        (publishes / 1000) * prices.putMetricThousand +
        tasks * prices.logGb,
    },
  ];
}

/** Renewals on provisioned capacity, which a steady load like theirs fills well. */
export function provisionedRenewals({ connections, heartbeatMs }: Load): number {
  return ((connections * 1000) / heartbeatMs) * RENEWAL_UNITS * PRICES.writeUnitHour * MONTH_H;
}
