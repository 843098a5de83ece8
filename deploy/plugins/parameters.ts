import { z } from "zod";
import { compileSettings, ConfigurationError } from "../../shared/config/compile.ts";
import { DEFINITIONS, type SettingName } from "../../shared/config/definitions.ts";
import { maxHeartbeatMs } from "../../shared/config/rules.ts";

/** Parameters of a deployment as text, by name: those of serverless.yml under `params`, with what was given instead. */
export type Parameters = Readonly<Record<string, string>>;

type Schema = z.ZodType<unknown, string>;

const integer = (min: number, max: number): Schema =>
  z.string().refine((text) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max, {
    error: `must be a whole number from ${min} to ${max}`,
  });
const oneOf = (...values: readonly string[]): Schema =>
  z.string().refine((text) => values.includes(text), { error: `must be one of ${values.join(", ")}` });
const emptyOr = (pattern: RegExp, error: string): Schema =>
  z.string().refine((text) => text === "" || pattern.test(text), { error });
const trueOrFalse = oneOf("true", "false");

/** Parameters that set the setting of the same name; in seconds where AWS counts in them as well. */
const SETTINGS = [
  ...["leaseMs", "heartbeatMs", "heartbeatJitter", "marginMs", "skewMs", "attemptTimeoutMs", "attempts"],
  ...["sweepMs", "metricsMs", "maxParkMs", "targetConnections", "maxConnections", "acquireBudgetMs", "quietQueueMs"],
  ...["drainBudgetMs", "logLevel"],
] as SettingName[];
const IN_SECONDS: Readonly<Record<string, SettingName>> = {
  hintVisibilitySeconds: "hintVisibilityMs",
  longPollSeconds: "longPollMs",
  stopTimeoutSeconds: "stopTimeoutMs",
};

/** What each of the others may be by itself. */
const SCHEMAS: Readonly<Record<string, Schema>> = {
  workerImage: emptyOr(/^[a-z0-9][^\s"'$]*$/, "must be an image, like registry.example/team/worker:1"),
  workerCpu: oneOf("256", "512", "1024", "2048", "4096", "8192", "16384"),
  workerMemory: integer(512, 122_880),
  // The first task of a fleet at zero would wait for metrics that only a running fleet publishes.
  minTasks: integer(1, 5000),
  maxTasks: integer(1, 5000),
  onDemandWeight: integer(0, 1000),
  spotWeight: integer(0, 1000),
  vpcId: emptyOr(/^vpc-[0-9a-f]+$/, "must be like vpc-0a1b2c3d"),
  subnetIds: emptyOr(
    /^subnet-[0-9a-f]+(,subnet-[0-9a-f]+)*$/,
    "must be like subnet-0a1b2c3d,subnet-2c3d4e5f, without spaces",
  ),
  assignPublicIp: oneOf("ENABLED", "DISABLED"),
  alarmTopicArn: emptyOr(/^arn:[^:]+:sns:[^:]+:\d{12}:.+$/, "must be the ARN of an SNS topic"),
  logRetentionDays: integer(1, 3653),
  reserveConcurrency: trueOrFalse,
  autoscaling: trueOrFalse,
  tableDeletionPolicy: oneOf("Retain", "Delete"),
  tableDeletionProtection: trueOrFalse,
  // A hint lives for 60 s and counts as poison after 50 receives: with one second, good hints would count as poison.
  hintVisibilitySeconds: integer(2, 30),
  longPollSeconds: integer(0, 20),
  // Fargate allows no more.
  stopTimeoutSeconds: integer(10, 120),
  scaleOutCooldownSeconds: integer(0, 86_400),
  scaleInCooldownSeconds: integer(0, 86_400),
  targetHintsPerTask: integer(1, 1_000_000),
  orphanAlarmMs: integer(1000, 86_400_000),
  iteratorAgeAlarmMs: integer(1000, 86_400_000),
  deadlineAlarmMs: integer(1, 86_400_000),
  clockAlarmMs: integer(1, 86_400_000),
};

/** Every parameter there is. */
export const PARAMETER_NAMES: readonly string[] = [...Object.keys(SCHEMAS), ...SETTINGS];

/** Every problem names the parameters and the rule. */
export function parameterProblems(given: Parameters): string[] {
  const unknown = Object.keys(given).filter((name) => !PARAMETER_NAMES.includes(name));
  const single = [
    ...unknown.map((name) => `${name}: no such parameter; serverless.yml lists them under params`),
    ...Object.entries(SCHEMAS).flatMap(([name, schema]) => {
      const text = given[name] ?? "";
      const issue = schema.safeParse(text).error?.issues[0];
      return issue === undefined ? [] : [`${name}=${JSON.stringify(text)}: ${issue.message}`];
    }),
  ];
  // Relations between values that are none by themselves would only repeat what was said.
  const problems = single.length > 0 ? single : settingProblems(given);
  return problems.length > 0 ? problems : relationProblems(given);
}

function settingProblems(given: Parameters): string[] {
  const environment: Record<string, string> = {};
  for (const name of SETTINGS) environment[DEFINITIONS[name].env] = given[name] ?? "";
  for (const [name, setting] of Object.entries(IN_SECONDS)) environment[DEFINITIONS[setting].env] = `${given[name]}000`;
  try {
    compileSettings(environment, [...SETTINGS, ...Object.values(IN_SECONDS)]);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems.map(inParameters);
    throw error;
  }
}

/** Says a problem of settings in the names that were given. */
function inParameters(problem: string): string {
  const seconds = new Map(Object.entries(IN_SECONDS).map(([parameter, setting]) => [setting, parameter]));
  return Object.entries(DEFINITIONS).reduce(
    (text, [name, { env }]) =>
      text.replaceAll(new RegExp(`\\b${env}\\b`, "g"), seconds.get(name as SettingName) ?? name),
    problem,
  );
}

/** Memory that Fargate pairs with each CPU size: from, to and in steps of, in MiB. */
const FARGATE_MEMORY: Readonly<Record<string, readonly [number, number, number]>> = {
  256: [512, 2048, 512],
  512: [1024, 4096, 1024],
  1024: [2048, 8192, 1024],
  2048: [4096, 16_384, 1024],
  4096: [8192, 30_720, 1024],
  8192: [16_384, 61_440, 4096],
  16384: [32_768, 122_880, 8192],
};

interface Relation {
  readonly holds: (text: (name: string) => string, number: (name: string) => number) => boolean;
  readonly text: string;
}

const RELATIONS: readonly Relation[] = [
  {
    holds: (_, v) => {
      const [from, to, step] = FARGATE_MEMORY[v("workerCpu")] ?? [0, 0, 1];
      const memory = v("workerMemory");
      // Of a quarter of a CPU alone there is no size of 1,536.
      return memory >= from && memory <= to && memory % step === 0 && memory !== 1536;
    },
    text: "workerCpu, workerMemory: Fargate has no task of this size",
  },
  { holds: (_, v) => v("maxTasks") >= v("minTasks"), text: "maxTasks: must be at least minTasks" },
  {
    holds: (_, v) => v("onDemandWeight") + v("spotWeight") > 0,
    text: "onDemandWeight, spotWeight: one of them must be above 0",
  },
  {
    holds: (t) => (t("vpcId") === "") === (t("subnetIds") === ""),
    text: "vpcId, subnetIds: give both, or none for a network of its own",
  },
  {
    holds: (t) => t("vpcId") !== "" || t("assignPublicIp") === "ENABLED",
    text: "assignPublicIp: must be ENABLED in the fleet's own network, which has no other way out",
  },
  {
    holds: (t) => t("tableDeletionPolicy") === "Retain" || t("tableDeletionProtection") === "false",
    text: "tableDeletionProtection: must be false when tableDeletionPolicy is Delete, or removing the stack fails",
  },
  {
    holds: (_, v) =>
      v("deadlineAlarmMs") < v("leaseMs") - v("marginMs") - maxHeartbeatMs(v("heartbeatMs"), v("heartbeatJitter")),
    text: "deadlineAlarmMs: must be less than lease − margin − longest heartbeat, or it rings without a fault",
  },
  {
    holds: (_, v) => v("clockAlarmMs") <= v("skewMs"),
    text: "clockAlarmMs: must be at most skewMs, beyond which workers give everything back",
  },
  {
    holds: (_, v) => v("orphanAlarmMs") > v("sweepMs"),
    text: "orphanAlarmMs: must be more than sweepMs, since orphans wait for the next sweep",
  },
];

function relationProblems(given: Parameters): string[] {
  const text = (name: string): string => given[name] ?? "";
  return RELATIONS.filter(({ holds }) => !holds(text, (name) => Number(text(name)))).map((relation) => relation.text);
}

/** A stage is part of names: of functions and rules with at most 64 characters, and of a repository in lower case. */
export function stageProblems(stage: string): string[] {
  return /^[a-z0-9]+(-[a-z0-9]+)*$/.test(stage) && stage.length <= 32
    ? []
    : [`stage ${JSON.stringify(stage)}: must be lower-case letters, digits and single hyphens, at most 32 of them`];
}
