/**
 * What CloudFormation references stand for locally: `LogicalId` for Ref, `LogicalId.Attribute` for GetAtt, and the
 * pseudo parameters (`AWS::Region`).
 */
export type References = Readonly<Record<string, string>>;

/**
 * A copy of `value` with Ref, Fn::GetAtt, Fn::Sub and Fn::Join replaced by their local values.
 * @throws {Error} naming the reference and `at` when there is no local value, or the function is another one.
 */
export function resolveIntrinsics(value: unknown, references: References, at: string): unknown {
  if (Array.isArray(value)) return value.map((inner, i) => resolveIntrinsics(inner, references, `${at}.${i}`));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [first] = entries;
  if (entries.length === 1 && first !== undefined && (first[0] === "Ref" || first[0].startsWith("Fn::"))) {
    return resolveCall(first[0], first[1], references, at);
  }
  return Object.fromEntries(entries.map(([key, inner]) => [key, resolveIntrinsics(inner, references, `${at}.${key}`)]));
}

function resolveCall(name: string, argument: unknown, references: References, at: string): string {
  switch (name) {
    case "Ref":
      return lookUp(String(argument), references, at);
    case "Fn::GetAtt":
      return lookUp(Array.isArray(argument) ? argument.join(".") : String(argument), references, at);
    case "Fn::Sub":
      if (typeof argument !== "string")
        throw new Error(`serverless.yml: ${at}: Fn::Sub with a map is not played locally`);
      return argument.replace(/\$\{([^!}][^}]*)\}/g, (_, key: string) => lookUp(key.trim(), references, at));
    case "Fn::Join":
      return join(argument, references, at);
    default:
      throw new Error(`serverless.yml: ${at}: ${name} is not played locally`);
  }
}

function join(argument: unknown, references: References, at: string): string {
  const [separator, parts] = Array.isArray(argument) ? (argument as unknown[]) : [];
  if (typeof separator !== "string" || !Array.isArray(parts)) {
    throw new Error(`serverless.yml: ${at}: Fn::Join needs a separator and a list`);
  }
  return parts.map((part) => String(resolveIntrinsics(part, references, at))).join(separator);
}

function lookUp(key: string, references: References, at: string): string {
  const value = references[key];
  if (value === undefined) throw new Error(`serverless.yml: ${at}: nothing local stands for the reference ${key}`);
  return value;
}
