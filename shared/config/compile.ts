import { DEFINITIONS, type Definition, type SettingName, type Settings } from "./definitions.ts";
import { RULES } from "./rules.ts";

/** The settings cannot work. Every problem names the variable and the rule; programs print them and exit with code 2. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`configuration refused:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`);
    this.problems = problems;
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = "WS_FLEET_";
const KNOWN = new Set(Object.values(DEFINITIONS).map((definition) => definition.env));

/**
 * Compiles the environment once into typed settings: the named ones, checked each by itself and then against each other.
 * Unknown variables with the project's prefix are refused, since a typo would silently leave a default in force.
 *
 * @throws {ConfigurationError} with all problems at once.
 */
export function compileSettings<N extends SettingName>(environment: Environment, names: readonly N[]): Settings<N> {
  const problems: string[] = [];
  for (const key of Object.keys(environment)) {
    if (key.startsWith(PREFIX) && !KNOWN.has(key)) problems.push(`${key}: no such setting`);
  }
  const values: Partial<Record<SettingName, unknown>> = {};
  for (const name of names) {
    const definition: Definition = DEFINITIONS[name];
    const text = environment[definition.env] ?? definition.default;
    if (text === undefined) {
      problems.push(`${definition.env}: must be set (${definition.meaning})`);
      continue;
    }
    const parsed = definition.schema.safeParse(text);
    if (parsed.success) values[name] = parsed.data;
    else problems.push(`${definition.env}=${JSON.stringify(text)}: ${parsed.error.issues[0]?.message ?? "invalid"}`);
  }
  if (problems.length === 0) problems.push(...brokenRules(values));
  if (problems.length > 0) throw new ConfigurationError(problems);
  // Each named setting was parsed by its own schema, or a problem was thrown.
  return values as Settings<N>;
}

/** Only rules whose settings are all in use: a function has no drain, a worker no sweep. */
function brokenRules(values: Partial<Record<SettingName, unknown>>): string[] {
  return RULES.filter((rule) => rule.uses.every((name) => values[name] !== undefined))
    .filter((rule) => !rule.holds((name) => values[name] as number))
    .map((rule) => `${rule.uses.map((name) => DEFINITIONS[name].env).join(", ")}: ${rule.text}`);
}
