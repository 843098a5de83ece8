import { after } from "node:test";
import { functionsSuite } from "./template/functions.ts";
import { iamSuite } from "./template/iam.ts";
import { observeSuite } from "./template/observe.ts";
import { redeploySuite } from "./template/redeploy.ts";
import { schemaSuite } from "./template/schema.ts";
import { settingsSuite } from "./template/settings.ts";
import { streamSuite } from "./template/stream.ts";
import { workerSuite } from "./template/worker.ts";
import { packageService } from "./support/package.ts";

/** Packaged once, without credentials or network, as `serverless deploy` would hand it to CloudFormation. */
const { template, remove } = await packageService();
after(remove);
/** The same with as much as possible given otherwise. */
const changed = await packageService([
  "workerImage=123456789012.dkr.ecr.us-east-1.amazonaws.com/team/worker:1",
  "vpcId=vpc-0a1b2c3d",
  "subnetIds=subnet-0a1b2c3d,subnet-2c3d4e5f",
  "assignPublicIp=DISABLED",
  "alarmTopicArn=arn:aws:sns:us-east-1:123456789012:alarms",
  "spotWeight=3",
  "reserveConcurrency=false",
  "autoscaling=false",
  "workerCpu=1024",
  "workerMemory=2048",
  "leaseMs=40000",
  "heartbeatMs=10000",
  "hintVisibilitySeconds=5",
  "logRetentionDays=30",
]);
after(changed.remove);

schemaSuite(template, changed.template);
iamSuite(template);
functionsSuite(template);
settingsSuite(template);
streamSuite(template);
workerSuite(template);
observeSuite(template);
redeploySuite(template, changed.template);
