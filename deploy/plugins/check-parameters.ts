import { ConfigurationError } from "../../shared/config/compile.ts";
import { workerSettings } from "../../worker/settings.ts";
import { containerEnvironment } from "./container-environment.ts";
import type { Plugin, Serverless, Template } from "./osls.ts";
import { parameterProblems, stageProblems, type Parameters } from "./parameters.ts";

/**
 * Refuses a deployment that could not work, before anything is created: parameters that AWS or a worker would refuse
 * halfway, or that do not exist, and so would leave a default in force.
 */
export default class CheckParameters implements Plugin {
  readonly hooks;

  constructor(serverless: Serverless) {
    const refuse = (problems: readonly string[]): void => {
      if (problems.length === 0) return;
      const list = problems.map((problem) => `  - ${problem}`).join("\n");
      throw new serverless.classes.Error(`parameters refused:\n${list}`, "WS_FLEET_PARAMETERS");
    };
    this.hooks = {
      "before:package:cleanup": () => {
        const stage = serverless.getProvider("aws").getStage();
        refuse([...stageProblems(stage), ...parameterProblems(parametersOf(serverless, stage))]);
      },
      "after:aws:package:finalize:mergeCustomProviderResources": () => {
        refuse(settingProblems(serverless.service.provider.compiledCloudFormationTemplate));
      },
    };
  }
}

/** As the framework resolves `${param:…}`: the command line, then the stage's, then the defaults. */
export function parametersOf({ configurationInput, processedInput }: Serverless, stage: string): Parameters {
  const { params = {} } = configurationInput;
  const given = (processedInput.options.param ?? []).map((text) => {
    const at = text.indexOf("=");
    return [text.slice(0, at), text.slice(at + 1).trimEnd()] as const;
  });
  const values = { ...params["default"], ...params[stage], ...Object.fromEntries(given) };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
}

/** What a worker would refuse of the template's own environment, which people may have added to. */
export function settingProblems(template: Template): readonly string[] {
  try {
    // References become what they stand for only during the deployment; a URL passes for each of them.
    workerSettings(containerEnvironment(template, () => "https://known.at/deployment"));
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}
