import { ConfigurationError } from "../../shared/config/compile.ts";
import { workerSettings } from "../../worker/settings.ts";
import { containerEnvironment } from "./container-environment.ts";
import { propertiesOf, type Plugin, type Serverless, type Template } from "./osls.ts";

/**
 * Refuses a deployment that could not work, while packaging and so before anything is created: settings that the worker
 * would refuse at its start, where a rolling deployment would only show them as tasks that die.
 */
export default class CheckParameters implements Plugin {
  readonly hooks;

  constructor(serverless: Serverless) {
    this.hooks = {
      "after:aws:package:finalize:mergeCustomProviderResources": () => {
        const problems = parameterProblems(serverless.service.provider.compiledCloudFormationTemplate);
        if (problems.length === 0) return;
        const list = problems.map((problem) => `  - ${problem}`).join("\n");
        throw new serverless.classes.Error(`parameters refused:\n${list}`, "WS_FLEET_PARAMETERS");
      },
    };
  }
}

/** Every problem names the parameter or the setting, and the rule. */
export function parameterProblems(template: Template): string[] {
  return [...settingProblems(template), ...placeProblems(template), ...scalingProblems(template)];
}

function settingProblems(template: Template): readonly string[] {
  try {
    // References become what they stand for only during the deployment; a URL passes for each of them.
    workerSettings(containerEnvironment(template, () => "https://known.at/deployment"));
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}

function placeProblems({ Parameters }: Template): string[] {
  const vpcId = String(Parameters?.["VpcId"]?.Default);
  const subnetIds = String(Parameters?.["SubnetIds"]?.Default);
  const topicArn = String(Parameters?.["AlarmTopicArn"]?.Default);
  const problems: string[] = [];
  if ((vpcId === "") !== (subnetIds === "")) {
    problems.push("vpcId, subnetIds: give both, or none for a network of its own");
  }
  if (vpcId !== "" && !/^vpc-[0-9a-f]+$/.test(vpcId)) problems.push("vpcId: must be like vpc-0a1b2c3d");
  if (subnetIds !== "" && !/^subnet-[0-9a-f]+(,subnet-[0-9a-f]+)*$/.test(subnetIds)) {
    problems.push("subnetIds: must be like subnet-0a1b2c3d,subnet-2c3d4e5f, without spaces");
  }
  if (topicArn !== "" && !/^arn:[^:]+:sns:[^:]+:\d{12}:.+$/.test(topicArn)) {
    problems.push("alarmTopicArn: must be the ARN of an SNS topic");
  }
  return problems;
}

function scalingProblems(template: Template): string[] {
  const { MinCapacity, MaxCapacity } = propertiesOf(template, "WorkerScaling");
  const [min, max] = [Number(MinCapacity), Number(MaxCapacity)];
  // The first task of a fleet at zero would wait for metrics that only a running fleet publishes.
  if (!Number.isSafeInteger(min) || min < 1) return ["minTasks: must be a whole number of at least 1"];
  return Number.isSafeInteger(max) && max >= min ? [] : ["maxTasks: must be a whole number of at least minTasks"];
}
