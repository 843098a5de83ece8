import { resolveIntrinsics, type References } from "../serverless/intrinsics.ts";

/** Environment variables of serverless.yml as text, with local values for references. */
export function resolvedEnvironment(
  environment: Readonly<Record<string, unknown>>,
  references: References,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      String(resolveIntrinsics(value, references, `environment.${name}`)),
    ]),
  );
}
