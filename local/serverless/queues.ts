import { z } from "zod";
import { parsePart } from "./parse-part.ts";

/** An AWS::SQS::Queue of serverless.yml. */
export interface QueueDefinition {
  readonly logicalId: string;
  readonly queueName: string;
  /** As CreateQueue takes them, without the redrive policy. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly redrive: { readonly targetLogicalId: string; readonly maxReceiveCount: number } | undefined;
}

const seconds = z.int().min(0);

const queueProperties = z.strictObject({
  QueueName: z.string().min(1).max(80),
  MessageRetentionPeriod: seconds.min(60).optional(),
  ReceiveMessageWaitTimeSeconds: seconds.max(20).optional(),
  VisibilityTimeout: seconds.max(43_200).optional(),
  DelaySeconds: seconds.max(900).optional(),
  MaximumMessageSize: z.int().optional(),
  RedrivePolicy: z
    .strictObject({
      deadLetterTargetArn: z.strictObject({ "Fn::GetAtt": z.tuple([z.string(), z.literal("Arn")]) }),
      maxReceiveCount: z.int().min(1).max(1000),
    })
    .optional(),
  // Known, and without meaning on the loopback interface.
  SqsManagedSseEnabled: z.unknown().optional(),
  KmsMasterKeyId: z.unknown().optional(),
  KmsDataKeyReusePeriodSeconds: z.unknown().optional(),
  RedriveAllowPolicy: z.unknown().optional(),
  Tags: z.unknown().optional(),
});

const SERVED = [
  "MessageRetentionPeriod",
  "ReceiveMessageWaitTimeSeconds",
  "VisibilityTimeout",
  "DelaySeconds",
  "MaximumMessageSize",
] as const;

/** @throws {Error} naming the property that is wrong or unknown. */
export function queueDefinition(logicalId: string, properties: unknown): QueueDefinition {
  const queue = parsePart(queueProperties, properties, `resources.${logicalId}.Properties`);
  const attributes: Record<string, string> = {};
  for (const name of SERVED) {
    const value = queue[name];
    if (value !== undefined) attributes[name] = String(value);
  }
  const redrive = queue.RedrivePolicy;
  return {
    logicalId,
    queueName: queue.QueueName,
    attributes,
    redrive: redrive && {
      targetLogicalId: redrive.deadLetterTargetArn["Fn::GetAtt"][0],
      maxReceiveCount: redrive.maxReceiveCount,
    },
  };
}
