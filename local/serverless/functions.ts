import { z } from "zod";
import { parsePart } from "./parse-part.ts";

/** A rule on a fixed rate. */
export interface ScheduleTrigger {
  readonly kind: "schedule";
  readonly rateMs: number;
}

/** A stream of a table, as an event source mapping reads it. */
export interface StreamTrigger {
  readonly kind: "stream";
  readonly tableLogicalId: string;
  readonly startingPosition: "LATEST" | "TRIM_HORIZON";
  readonly batchSize: number;
  /** Alternatives; empty = everything matches. */
  readonly filterPatterns: readonly unknown[];
  readonly reportBatchItemFailures: boolean;
  readonly bisectBatchOnFunctionError: boolean;
  /** Infinity = until the record leaves the stream. */
  readonly maximumRetryAttempts: number;
  /** Infinity = until the record leaves the stream. */
  readonly maximumRecordAgeMs: number;
  readonly onFailureQueueLogicalId: string | undefined;
}

/** A rule on an event pattern; references in the pattern are still those of CloudFormation. */
export interface EventTrigger {
  readonly kind: "event";
  readonly pattern: unknown;
}

export type Trigger = ScheduleTrigger | StreamTrigger | EventTrigger;

export interface FunctionDefinition {
  readonly name: string;
  /** `path/without/extension.export`, relative to the project's root. */
  readonly handler: string;
  readonly timeoutMs: number;
  readonly memoryMb: number;
  /** How often a failed asynchronous invocation (schedule, event) is repeated. */
  readonly asyncRetryAttempts: number;
  /** Of the provider and the function; values may be CloudFormation references. */
  readonly environment: Readonly<Record<string, unknown>>;
  readonly triggers: readonly Trigger[];
}

/** Lambda's own defaults. */
const DEFAULT_ASYNC_RETRIES = 2;
const DEFAULT_STREAM_BATCH = 10;

const MINUTE_MS = 60_000;
const UNIT_MS: Readonly<Record<string, number>> = { minute: MINUTE_MS, hour: 60 * MINUTE_MS, day: 1440 * MINUTE_MS };

const schedule = z.union([
  z.string(),
  z.strictObject({
    rate: z.array(z.string()).length(1),
    enabled: z.boolean().optional(),
    description: z.string().optional(),
  }),
]);

const stream = z.strictObject({
  type: z.literal("dynamodb"),
  arn: z.strictObject({ "Fn::GetAtt": z.tuple([z.string(), z.literal("StreamArn")]) }),
  startingPosition: z.enum(["LATEST", "TRIM_HORIZON"]).default("TRIM_HORIZON"),
  batchSize: z.int().min(1).max(10_000).default(DEFAULT_STREAM_BATCH),
  filterPatterns: z.array(z.record(z.string(), z.unknown())).default([]),
  functionResponseType: z.literal("ReportBatchItemFailures").optional(),
  bisectBatchOnFunctionError: z.boolean().default(false),
  maximumRetryAttempts: z.int().min(-1).default(-1),
  maximumRecordAgeInSeconds: z.int().min(-1).default(-1),
  destinations: z
    .strictObject({
      onFailure: z.strictObject({
        type: z.literal("sqs"),
        arn: z.strictObject({ "Fn::GetAtt": z.tuple([z.string(), z.literal("Arn")]) }),
      }),
    })
    .optional(),
});

const eventBridge = z.object({ pattern: z.record(z.string(), z.unknown()) });

const event = z.union([z.strictObject({ schedule }), z.strictObject({ stream }), z.strictObject({ eventBridge })]);

// Loose: roles, tags, log settings and the like do not change what a local run does.
const functionSchema = z.object({
  handler: z.string().regex(/^[^.]+(\.[^./]+)*\.[A-Za-z_$][\w$]*$/, "must be path/of/file.exportedName"),
  timeout: z.int().min(1).max(900).optional(),
  memorySize: z.int().min(128).optional(),
  maximumRetryAttempts: z.int().min(0).max(2).default(DEFAULT_ASYNC_RETRIES),
  environment: z.record(z.string(), z.unknown()).default({}),
  events: z.array(event).default([]),
});

export const providerSchema = z.object({
  timeout: z.int().min(1).max(900).default(6),
  memorySize: z.int().min(128).default(1024),
  environment: z.record(z.string(), z.unknown()).default({}),
});

export type ProviderDefaults = z.infer<typeof providerSchema>;

/** @throws {Error} naming the field that is wrong, or the kind of event that has no local trigger. */
export function functionDefinition(name: string, value: unknown, provider: ProviderDefaults): FunctionDefinition {
  const at = `functions.${name}`;
  const parsed = parsePart(functionSchema, value, at);
  return {
    name,
    handler: parsed.handler,
    timeoutMs: (parsed.timeout ?? provider.timeout) * 1000,
    memoryMb: parsed.memorySize ?? provider.memorySize,
    asyncRetryAttempts: parsed.maximumRetryAttempts,
    environment: { ...provider.environment, ...parsed.environment },
    triggers: parsed.events.flatMap((one, i) => triggersOf(one, `${at}.events.${i}`)),
  };
}

function triggersOf(one: z.infer<typeof event>, at: string): Trigger[] {
  if ("schedule" in one) {
    const rule = typeof one.schedule === "string" ? { rate: [one.schedule] } : one.schedule;
    return rule.enabled === false
      ? []
      : rule.rate.map((rate) => ({ kind: "schedule", rateMs: parseRateMs(rate, `${at}.schedule`) }));
  }
  if ("eventBridge" in one) return [{ kind: "event", pattern: one.eventBridge.pattern }];
  const mapping = one.stream;
  return [
    {
      kind: "stream",
      tableLogicalId: mapping.arn["Fn::GetAtt"][0],
      startingPosition: mapping.startingPosition,
      batchSize: mapping.batchSize,
      filterPatterns: mapping.filterPatterns,
      reportBatchItemFailures: mapping.functionResponseType !== undefined,
      bisectBatchOnFunctionError: mapping.bisectBatchOnFunctionError,
      maximumRetryAttempts: mapping.maximumRetryAttempts < 0 ? Infinity : mapping.maximumRetryAttempts,
      maximumRecordAgeMs: mapping.maximumRecordAgeInSeconds < 0 ? Infinity : mapping.maximumRecordAgeInSeconds * 1000,
      onFailureQueueLogicalId: mapping.destinations?.onFailure.arn["Fn::GetAtt"][0],
    },
  ];
}

/** The period of `rate(N unit)`. @throws {Error} for anything else: cron expressions have no local trigger. */
export function parseRateMs(expression: string, at: string): number {
  const match = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression);
  const count = Number(match?.[1]);
  const unitMs = UNIT_MS[match?.[2] ?? ""];
  if (unitMs === undefined || !(count > 0)) {
    throw new Error(`serverless.yml: ${at}: must be rate(N minutes|hours|days), got ${JSON.stringify(expression)}`);
  }
  return count * unitMs;
}
