import { propertiesOf, type Template } from "./osls.ts";

export interface ContainerDefinition {
  Image?: unknown;
  readonly Name: string;
  readonly Environment: { readonly Name: string; readonly Value: unknown }[];
}

/** The one container of the worker's task definition. */
export function workerContainer(template: Template): ContainerDefinition {
  const [container] = propertiesOf(template, "WorkerTask")["ContainerDefinitions"] as ContainerDefinition[];
  if (container?.Name !== "worker") throw new Error("WorkerTask: its first container must be called worker");
  return container;
}

/** The environment that the template gives the worker. @param resolve the value of a CloudFormation reference */
export function containerEnvironment(
  template: Template,
  resolve: (reference: object) => string,
): Record<string, string> {
  return Object.fromEntries(
    workerContainer(template).Environment.map(({ Name, Value }) => [
      Name,
      typeof Value === "object" && Value !== null ? resolve(Value) : String(Value),
    ]),
  );
}
