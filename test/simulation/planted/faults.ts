import { ConditionalCheckFailedException, type UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { AnchoredClock } from "../../../shared/clock.ts";
import { CONNECTION } from "../../../shared/connection/attributes.ts";
import { Deadline, type Checkpoint } from "../../../shared/lease/index.ts";
import { Holding } from "../../../worker/lease/holding.ts";
import { MessageLane } from "../../../worker/messages/lane.ts";
import { MessageWriter } from "../../../worker/messages/writer.ts";
import type { Rule } from "../checker/violations.ts";
import { AT_THE_DEADLINE, FROZEN_IN_FLIGHT, SAME_OWNER, SUSPENDED } from "../scenario/ranges.ts";
import type { SimulationOptions } from "../simulation.ts";
import type { Fleet } from "../world/fleet.ts";
import type { Answer, Tampering } from "../world/store.ts";

/** A mistake that the code could have, and the first rule of the checker that shows it. */
export interface PlantedFault {
  readonly name: string;
  readonly caughtBy: readonly Rule[];
  /** A seed that shows it. Others soon after do too, so that a change elsewhere, which shuffles all runs, does not matter. */
  readonly seed: number;
  readonly options?: Partial<SimulationOptions>;
  /** Replaces methods of the code under test; the result puts them back. */
  readonly install?: (fleet: () => Fleet) => () => void;
}

const HOLDER = "lease_owner = :me AND lease_epoch = :mine";

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Replaces one method or getter of a class until the returned function is called. */
function replace<T extends object>(
  prototype: T,
  name: keyof T & string,
  replacement: (original: Method) => PropertyDescriptor,
): () => void {
  const before = Object.getOwnPropertyDescriptor(prototype, name);
  if (before === undefined) throw new Error(`nothing is called ${name}`);
  Object.defineProperty(prototype, name, {
    ...before,
    ...replacement((before.value ?? Reflect.get(before, "get")) as Method),
  });
  return () => void Object.defineProperty(prototype, name, before);
}

function allOf(undo: readonly (() => void)[]): () => void {
  return () => {
    for (const one of undo) one();
  };
}

/** Changes the holder's writes: renewals, releases and parks. */
function onHolderWrites(change: (input: UpdateItemCommandInput, condition: string) => void) {
  return (operation: string, input: object): object => {
    const update = input as UpdateItemCommandInput;
    const condition = update.ConditionExpression ?? "";
    if (operation === "UpdateItem" && condition.startsWith(HOLDER)) change(update, condition);
    return input;
  };
}

function onAcquires(change: (input: UpdateItemCommandInput) => void) {
  return (operation: string, input: object): object => {
    if (operation === "UpdateItem" && isAcquire(input)) change(input as UpdateItemCommandInput);
    return input;
  };
}

function isAcquire(input: object): boolean {
  return (input as UpdateItemCommandInput).UpdateExpression?.startsWith("SET lease_owner = :me") === true;
}

function without(input: UpdateItemCommandInput, ...names: string[]): void {
  const values = { ...input.ExpressionAttributeValues };
  for (const name of names) Reflect.deleteProperty(values, name);
  input.ExpressionAttributeValues = values;
}

function refusal(answer: Answer): ConditionalCheckFailedException | undefined {
  return "error" in answer && answer.error instanceof ConditionalCheckFailedException ? answer.error : undefined;
}

const WITHOUT_EPOCH: Tampering = {
  request: onHolderWrites((input, condition) => {
    input.ConditionExpression = condition.replace(" AND lease_epoch = :mine", "");
    without(input, ":mine");
  }),
};

const UNCONDITIONAL_CHECKPOINT: Tampering = {
  request: onHolderWrites((input, condition) => {
    if (input.ExpressionAttributeValues?.[":lastSeq"] === undefined || !condition.includes(":expires")) return;
    delete input.ConditionExpression;
    without(input, ":me", ":mine");
  }),
};

function startDeadlineLate(fleet: () => Fleet): () => void {
  return replace(Holding.prototype, "extend", (original) => ({
    value(this: Holding): void {
      const task = fleet().tasks.find((candidate) => candidate.task === this.owner);
      if (task === undefined) throw new Error(`no task is called ${this.owner}`);
      const { leaseMs, marginMs } = fleet().settings;
      original.call(this, Deadline.startingNow(task.worker.clock, leaseMs - marginMs));
    },
  }));
}

export const PLANTED_FAULTS: readonly PlantedFault[] = [
  {
    name: "the epoch is missing in a holder's condition, as the request says",
    caughtBy: ["unconditional-write"],
    seed: 1,
    options: { tampering: WITHOUT_EPOCH },
  },
  {
    name: "the epoch is missing in a holder's condition, as its effects show",
    caughtBy: ["taken-while-acting", "last-seq-falls", "expiry-falls"],
    seed: 11,
    options: { tampering: WITHOUT_EPOCH, effectsOnly: true, ranges: SAME_OWNER },
  },
  {
    name: "the deadline starts when the answer arrives, as its length says",
    caughtBy: ["deadline-too-late"],
    seed: 1,
    install: startDeadlineLate,
  },
  {
    name: "the deadline starts when the answer arrives, as its effects show",
    caughtBy: ["taken-while-acting", "one-actor"],
    seed: 6,
    options: { effectsOnly: true, ranges: FROZEN_IN_FLIGHT },
    install: startDeadlineLate,
  },
  {
    name: "no margin between the deadline and the expiry",
    caughtBy: ["taken-while-acting", "one-actor"],
    seed: 6,
    options: { unchecked: { marginMs: 0 }, ranges: AT_THE_DEADLINE },
  },
  {
    name: "an unconditional checkpoint, as the request says",
    caughtBy: ["unconditional-write"],
    seed: 1,
    options: { tampering: UNCONDITIONAL_CHECKPOINT },
  },
  {
    name: "an unconditional checkpoint, as its effects show",
    caughtBy: ["expiry-falls", "last-seq-falls"],
    seed: 1,
    options: { tampering: UNCONDITIONAL_CHECKPOINT, effectsOnly: true, ranges: SAME_OWNER },
  },
  {
    name: "released before everything received is stored",
    caughtBy: ["message-lost"],
    seed: 8,
    install: () =>
      allOf([
        replace(MessageLane.prototype, "flush", () => ({ value: () => Promise.resolve(true) })),
        replace(MessageWriter.prototype, "flushAll", () => ({ value: () => Promise.resolve(true) })),
      ]),
  },
  {
    name: "a renewal is conditional on the expiry before it",
    caughtBy: ["stops-without-reason"],
    seed: 2,
    options: {
      tampering: {
        request: onHolderWrites((input, condition) => {
          if (!condition.includes("lease_expires_at_ms <= :expires")) return;
          input.ConditionExpression = `${HOLDER} AND lease_expires_at_ms < :expires`;
        }),
      },
    },
  },
  {
    name: "a throttle counts as a loss",
    caughtBy: ["stops-without-reason"],
    seed: 3,
    options: {
      tampering: {
        answer: (operation, _input, answer) =>
          operation === "UpdateItem" &&
          "error" in answer &&
          answer.error.name === "ProvisionedThroughputExceededException"
            ? { error: new ConditionalCheckFailedException({ message: "throttled", $metadata: {} }) }
            : answer,
      },
    },
  },
  {
    name: "a hint counts as ownership",
    caughtBy: ["one-actor"],
    seed: 1,
    options: {
      tampering: {
        answer: (_operation, input, answer) => {
          const item = isAcquire(input) ? refusal(answer)?.Item : undefined;
          return item === undefined ? answer : { output: { Attributes: item } };
        },
      },
    },
  },
  {
    name: "last_seq runs ahead of what is stored",
    caughtBy: ["checkpoint-past-gap"],
    seed: 2,
    install: () => {
      const highest = new WeakMap<object, Checkpoint>();
      return allOf([
        replace(MessageLane.prototype, "push", (original) => ({
          value(this: MessageLane, ...args: Parameters<MessageLane["push"]>): void {
            if (args[1]?.checkpointed !== false) highest.set(this, { lastSeq: args[0].seq });
            original.apply(this, args);
          },
        })),
        replace(MessageLane.prototype, "checkpoint", () => ({
          get(this: MessageLane): Checkpoint | undefined {
            return highest.get(this);
          },
        })),
      ]);
    },
  },
  {
    name: "the index is trusted without a look at the item",
    caughtBy: ["taken-while-acting"],
    seed: 1,
    options: {
      tampering: {
        request: onAcquires((input) => {
          input.ConditionExpression = `attribute_exists(${CONNECTION.id}) AND desired_state = :started`;
          without(input, ":takeable");
        }),
      },
    },
  },
  {
    name: "a machine that was suspended counts leases by the clock that stood still",
    caughtBy: ["taken-while-acting", "one-actor"],
    seed: 1,
    options: { ranges: SUSPENDED },
    install: () => replace(AnchoredClock.prototype, "leapMs", () => ({ value: () => 0 })),
  },
];
