import type { CreateTableCommandInput } from "@aws-sdk/client-dynamodb";
import { z } from "zod";
import { parsePart } from "./parse-part.ts";

/** An AWS::DynamoDB::Table of serverless.yml, as the local store has to create it. */
export interface TableDefinition {
  readonly logicalId: string;
  readonly tableName: string;
  readonly createInput: CreateTableCommandInput & { TableName: string };
  /** The attribute that holds the expiry in Unix seconds. */
  readonly timeToLiveAttribute: string | undefined;
}

const keySchema = z
  .array(z.strictObject({ AttributeName: z.string().min(1), KeyType: z.enum(["HASH", "RANGE"]) }))
  .min(1)
  .max(2);

const index = z.strictObject({
  IndexName: z.string().min(3),
  KeySchema: keySchema,
  Projection: z.strictObject({
    ProjectionType: z.enum(["ALL", "KEYS_ONLY", "INCLUDE"]),
    NonKeyAttributes: z.array(z.string()).optional(),
  }),
});

/** Strict: a property that nobody looked at could change what the table does, so it is refused by name. */
const tableProperties = z.strictObject({
  TableName: z.string().min(3),
  BillingMode: z.literal("PAY_PER_REQUEST"),
  AttributeDefinitions: z.array(
    z.strictObject({ AttributeName: z.string().min(1), AttributeType: z.enum(["S", "N", "B"]) }),
  ),
  KeySchema: keySchema,
  GlobalSecondaryIndexes: z.array(index).optional(),
  StreamSpecification: z
    .strictObject({ StreamViewType: z.enum(["NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY"]) })
    .optional(),
  TimeToLiveSpecification: z.strictObject({ AttributeName: z.string(), Enabled: z.boolean() }).optional(),
  // Known, and without meaning for a store that lives as long as one run.
  PointInTimeRecoverySpecification: z.unknown().optional(),
  SSESpecification: z.unknown().optional(),
  DeletionProtectionEnabled: z.unknown().optional(),
  ContributorInsightsSpecification: z.unknown().optional(),
  TableClass: z.unknown().optional(),
  Tags: z.unknown().optional(),
});

/** @throws {Error} naming the property that is wrong or unknown. */
export function tableDefinition(logicalId: string, properties: unknown): TableDefinition {
  const table = parsePart(tableProperties, properties, `resources.${logicalId}.Properties`);
  const ttl = table.TimeToLiveSpecification;
  return {
    logicalId,
    tableName: table.TableName,
    timeToLiveAttribute: ttl?.Enabled === true ? ttl.AttributeName : undefined,
    createInput: {
      TableName: table.TableName,
      BillingMode: table.BillingMode,
      AttributeDefinitions: table.AttributeDefinitions,
      KeySchema: table.KeySchema,
      ...(table.GlobalSecondaryIndexes && { GlobalSecondaryIndexes: table.GlobalSecondaryIndexes }),
      ...(table.StreamSpecification && {
        StreamSpecification: { StreamEnabled: true, StreamViewType: table.StreamSpecification.StreamViewType },
      }),
    },
  };
}
