/** The part of the Serverless Framework (osls 4) that the plugins here touch; it has no types of its own. */

/** A packaged CloudFormation template. */
export interface Template {
  readonly Parameters?: Readonly<Record<string, { readonly Default?: unknown }>>;
  readonly Resources: Record<string, Resource>;
}
export interface Resource {
  readonly Type: string;
  readonly Properties?: Record<string, unknown>;
}

/** Region and credentials as the framework resolves them (profile, `--aws-profile`, environment). */
export interface AwsConfig {
  readonly region?: string;
}

export interface Provider {
  getStage(): string;
  getRegion(): string;
  getAccountId(): Promise<string>;
  getAwsSdkV3Config(): Promise<AwsConfig>;
  readonly naming: { getStackName(): string };
}

/** Values of `params`, of one stage or of all. */
export type ParameterValues = Readonly<Record<string, string | number | boolean>>;

export interface Serverless {
  readonly serviceDir: string;
  /** serverless.yml as it was read. */
  readonly configurationInput: { readonly params?: Readonly<Record<string, ParameterValues>> };
  /** The command line; each `param` is `name=value`. */
  readonly processedInput: { readonly options: { readonly param?: readonly string[] } };
  readonly service: {
    readonly service: string;
    readonly provider: { readonly compiledCloudFormationTemplate: Template };
  };
  readonly pluginManager: { readonly plugins: readonly object[] };
  /** `Error` is shown to people without a stack. */
  readonly classes: { readonly Error: new (message: string, code: string) => Error };
  getProvider(name: "aws"): Provider;
}

/** What the framework hands to a plugin as its third argument. */
export interface Writers {
  readonly log: { notice(text: string): void; info(text: string): void };
}

export interface Plugin {
  readonly hooks: Readonly<Record<string, () => unknown>>;
}

/** The properties of a resource. @throws when the template lacks it. */
export function propertiesOf(template: Template, logicalId: string): Record<string, unknown> {
  const properties = template.Resources[logicalId]?.Properties;
  if (properties === undefined) throw new Error(`the template has no ${logicalId}`);
  return properties;
}
