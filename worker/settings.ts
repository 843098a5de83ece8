import { compileSettings, type Environment } from "../shared/config/compile.ts";
import {
  PLACE_DEFINITIONS,
  TIMING_DEFINITIONS,
  WORKER_DEFINITIONS,
  type SettingName,
  type Settings,
} from "../shared/config/definitions.ts";

type WorkerSettingName =
  | keyof typeof TIMING_DEFINITIONS
  | keyof typeof WORKER_DEFINITIONS
  | Exclude<keyof typeof PLACE_DEFINITIONS, "clusterName" | "runningTasksUrl">;

const NAMES = Object.keys({ ...TIMING_DEFINITIONS, ...WORKER_DEFINITIONS, ...PLACE_DEFINITIONS }).filter(
  (name) => name !== "clusterName" && name !== "runningTasksUrl",
) as (WorkerSettingName & SettingName)[];

export type WorkerSettings = Settings<WorkerSettingName>;

/** @throws {ConfigurationError} */
export function workerSettings(environment: Environment): WorkerSettings {
  return compileSettings(environment, NAMES);
}
