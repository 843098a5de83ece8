import { after } from "node:test";
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

schemaSuite(template);
iamSuite(template);
settingsSuite(template);
streamSuite(template);
workerSuite(template);
observeSuite(template);
redeploySuite(template);
