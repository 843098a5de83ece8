import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { randomUUID } from "node:crypto";
import { SystemClock, type Clock } from "../../shared/clock.ts";
import type { Logger } from "../../shared/logger.ts";
import type { Lambda } from "../lambda.ts";
import type { ServerlessFile } from "../serverless-file.ts";
import type {
  EventTrigger,
  FunctionDefinition,
  ScheduleTrigger,
  StreamTrigger,
  Trigger,
} from "../serverless/functions.ts";
import type { Stack } from "../stack/stack.ts";
import { invokeAsync, type AsyncInvokeDeps } from "./async-invoke.ts";
import { createEventBus, type BusEvent } from "./event-bus.ts";
import { onFailureMessage } from "./on-failure.ts";
import { scheduledEvent, startSchedule, type Schedule } from "./schedule.ts";
import { StreamClient } from "./stream-client.ts";
import { startStreamPump, type StreamPump, type StreamPumpStats } from "./stream-pump.ts";

export interface TriggersOptions {
  readonly file: ServerlessFile;
  readonly lambda: Pick<Lambda, "invoke" | "arnOf">;
  readonly stack: Pick<Stack, "references" | "dynamodbEndpoint" | "sqsEndpoint" | "region" | "credentials">;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** How often an idle stream is asked for news. */
  readonly streamPollMs?: number;
  /** Plays a broken stream: no table event reaches a function. */
  readonly withoutStream?: boolean;
  /** Plays lost events: what is put on the bus goes nowhere. */
  readonly withoutTaskEvents?: boolean;
}

export interface TriggerStats {
  /** By function name; a second trigger of one kind is `name#2`. */
  readonly streams: Readonly<Record<string, Readonly<StreamPumpStats>>>;
  readonly schedules: Readonly<Record<string, Readonly<Schedule["stats"]>>>;
  readonly events: { readonly events: number; readonly matched: number };
}

export interface Triggers {
  /** Puts an event on the bus and names the functions whose rules match; they run without being waited for. */
  readonly putEvent: (event: BusEvent) => string[];
  readonly stats: TriggerStats;
  /** No further invocation begins; those that run end with the functions' process. Repeatable. */
  stop(): Promise<void>;
}

interface Bound<T extends Trigger> {
  readonly definition: FunctionDefinition;
  readonly trigger: T;
}

/**
 * Plays the triggers that serverless.yml gives its functions. Resolves when streams are being read, so that every later
 * write to a table is seen; schedules have fired for the first time by then.
 */
export async function startTriggers(options: TriggersOptions): Promise<Triggers> {
  const { file, lambda, stack, logger, clock = new SystemClock() } = options;
  const abort = new AbortController();
  const deps: AsyncInvokeDeps = {
    invoke: (functionName, event) => lambda.invoke(functionName, event),
    clock,
    logger,
    signal: abort.signal,
  };
  const bound = file.functions.flatMap((definition) => definition.triggers.map((trigger) => ({ definition, trigger })));

  // Patterns are compiled before anything runs, so that a bad one leaves nothing behind.
  const bus = createEventBus(
    ofKind<EventTrigger>(bound, "event").map(({ definition, trigger }) => ({
      functionName: definition.name,
      pattern: trigger.pattern,
    })),
    stack.references,
    (functionName, event) => {
      const definition = file.functions.find((one) => one.name === functionName);
      void invokeAsync(deps, functionName, event, definition?.asyncRetryAttempts ?? 0);
    },
  );

  const sqs = new SQSClient({
    region: stack.region,
    endpoint: stack.sqsEndpoint,
    ...(stack.credentials && { credentials: stack.credentials }),
  });
  const pumps = new Map<string, StreamPump>();
  const schedules = new Map<string, Schedule>();
  const stop = async (): Promise<void> => {
    abort.abort();
    for (const schedule of schedules.values()) schedule.stop();
    await Promise.all([...pumps.values()].map((pump) => pump.stop()));
    sqs.destroy();
  };

  try {
    if (options.withoutStream !== true) {
      for (const { definition, trigger } of ofKind<StreamTrigger>(bound, "stream")) {
        pumps.set(freeKey(pumps, definition.name), await startPump({ ...options, clock }, sqs, definition, trigger));
      }
    }
    for (const { definition, trigger } of ofKind<ScheduleTrigger>(bound, "schedule")) {
      const ruleArn = `arn:aws:events:${stack.region}:000000000000:rule/${definition.name}`;
      const run = (): Promise<void> => {
        const event = scheduledEvent(randomUUID(), stack.region, clock.wallMs(), ruleArn);
        return invokeAsync(deps, definition.name, event, definition.asyncRetryAttempts);
      };
      schedules.set(freeKey(schedules, definition.name), startSchedule(trigger.rateMs, clock, run));
    }
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    putEvent: (event) => (options.withoutTaskEvents === true || abort.signal.aborted ? [] : bus.put(event)),
    stats: {
      streams: statsOf(pumps),
      schedules: statsOf(schedules),
      events: bus.stats,
    },
    stop,
  };
}

function startPump(
  options: TriggersOptions & { readonly clock: Clock },
  sqs: SQSClient,
  definition: FunctionDefinition,
  trigger: StreamTrigger,
): Promise<StreamPump> {
  const { lambda, stack, logger, clock } = options;
  const at = `functions.${definition.name}.stream`;
  const streamArn = reference(stack.references, `${trigger.tableLogicalId}.StreamArn`, at);
  const failureQueueUrl =
    trigger.onFailureQueueLogicalId === undefined
      ? undefined
      : reference(stack.references, trigger.onFailureQueueLogicalId, at);
  return startStreamPump({
    client: new StreamClient(stack.dynamodbEndpoint, stack.region, stack.credentials),
    streamArn,
    trigger,
    clock,
    logger,
    invoke: (event) => lambda.invoke(definition.name, event),
    onGivenUp: async (given, shardId) => {
      if (failureQueueUrl === undefined) return;
      const source = { functionArn: lambda.arnOf(definition.name), streamArn, shardId };
      const body = onFailureMessage(given, source, clock.wallMs());
      await sqs.send(new SendMessageCommand({ QueueUrl: failureQueueUrl, MessageBody: body }));
    },
    ...(options.streamPollMs !== undefined && { pollMs: options.streamPollMs }),
  });
}

function reference(references: Stack["references"], key: string, at: string): string {
  const value = references[key];
  if (value === undefined) throw new Error(`serverless.yml: ${at}: nothing local stands for the reference ${key}`);
  return value;
}

function freeKey(parts: ReadonlyMap<string, unknown>, name: string): string {
  let key = name;
  for (let i = 2; parts.has(key); i++) key = `${name}#${i}`;
  return key;
}

function ofKind<T extends Trigger>(bound: readonly Bound<Trigger>[], kind: T["kind"]): Bound<T>[] {
  return bound.filter((one): one is Bound<T> => one.trigger.kind === kind);
}

function statsOf<T>(parts: ReadonlyMap<string, { readonly stats: T }>): Record<string, T> {
  return Object.fromEntries([...parts].map(([name, { stats }]) => [name, stats]));
}
