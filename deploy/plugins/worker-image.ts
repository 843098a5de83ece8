import { ECRClient } from "@aws-sdk/client-ecr";
import { workerContainer } from "./container-environment.ts";
import { dockerCommand, type Docker } from "./docker.ts";
import { ImageRepository } from "./image-repository.ts";
import { imageTag } from "./image-tag.ts";
import { propertiesOf, type Plugin, type Serverless, type Template, type Writers } from "./osls.ts";

/** As the task definition says. */
const PLATFORM = "linux/arm64";

/**
 * Gives the worker's service its image. Packaging names it by the content it is built from; deploying builds and pushes
 * it before the stack is touched, unless ECR has it; removing deletes the repository after the stack. With the parameter
 * `workerImage` another image runs, and nothing is built.
 */
export default class WorkerImage implements Plugin {
  readonly hooks;
  readonly #serverless: Serverless;
  readonly #log: Writers["log"];

  constructor(serverless: Serverless, _options: object, { log }: Writers) {
    this.#serverless = serverless;
    this.#log = log;
    this.hooks = {
      "after:aws:package:finalize:mergeCustomProviderResources": () => {
        nameImage(this.#template, this.#repositoryName, imageTag(serverless.serviceDir));
      },
      "before:aws:deploy:deploy:createStack": () => this.#deployImage(),
      "after:remove:remove": () => this.#remove(),
    };
  }

  async #deployImage(): Promise<void> {
    const wanted = builtTag(this.#template);
    if (wanted === undefined) return;
    const deps = { repository: await this.#repository(), docker: dockerCommand(process.env), log: this.#log };
    const folder = this.#serverless.serviceDir;
    try {
      await provideImage(deps, { folder, wanted, offered: imageTag(folder), name: this.#repositoryName });
    } catch (error) {
      if (!(error instanceof NoImageError)) throw error;
      throw new this.#serverless.classes.Error(error.message, "WS_FLEET_WORKER_IMAGE");
    }
  }

  async #remove(): Promise<void> {
    const repository = await this.#repository();
    if (await repository.remove()) this.#log.notice(`Removed the repository ${this.#repositoryName} and its images`);
  }

  async #repository(): Promise<ImageRepository> {
    const config = await this.#serverless.getProvider("aws").getAwsSdkV3Config();
    return new ImageRepository(new ECRClient(config), this.#repositoryName);
  }

  get #template(): Template {
    return this.#serverless.service.provider.compiledCloudFormationTemplate;
  }

  get #repositoryName(): string {
    return `${this.#serverless.service.service}-${this.#serverless.getProvider("aws").getStage()}-worker`;
  }
}

/** There is no image to deploy, and the message says what to do about it. Nothing was created. */
export class NoImageError extends Error {
  override readonly name = "NoImageError";
}

export interface ProvideDeps {
  readonly repository: Pick<ImageRepository, "has" | "ensure" | "login">;
  readonly docker: Docker;
  readonly log: Writers["log"];
}

export interface ProvideRequest {
  readonly folder: string;
  /** The tag that the template names. */
  readonly wanted: string;
  /** The tag of what would be built now. */
  readonly offered: string;
  readonly name: string;
}

/** @throws {NoImageError} when the image is neither in ECR nor can be built here. */
export async function provideImage({ repository, docker, log }: ProvideDeps, request: ProvideRequest): Promise<void> {
  const { folder, name, offered, wanted } = request;
  if (await repository.has(wanted)) {
    log.info(`The image ${name}:${wanted} is there already`);
    return;
  }
  if (offered !== wanted) {
    throw new NoImageError(
      `the package was made for the image ${wanted}, but the sources are now ${offered}: package again`,
    );
  }
  const problem = await docker.problem();
  if (problem !== undefined) {
    throw new NoImageError(
      `the worker's image cannot be built: ${problem}\n` +
        'Nothing was deployed. Start a Docker engine with BuildKit, or give an image: --param="workerImage=…"',
    );
  }
  await repository.ensure();
  const { registry, user, password } = await repository.login();
  const image = `${registry}/${name}:${wanted}`;
  log.notice(`Building ${image}`);
  await docker.build(folder, PLATFORM, image);
  await docker.login(registry, user, password);
  try {
    await docker.push(image);
  } finally {
    // Otherwise the token stays in the user's configuration.
    await docker.logout(registry);
  }
}

/** Names the image in the template, and lets ECS pull from where it is. */
export function nameImage(template: Template, repositoryName: string, tag: string): void {
  const container = workerContainer(template);
  const given = String(container.Image);
  if (given === "") {
    const image = `\${AWS::AccountId}.dkr.ecr.\${AWS::Region}.\${AWS::URLSuffix}/${repositoryName}:${tag}`;
    container.Image = { "Fn::Sub": image };
    return;
  }
  allowPulling(template, repositoryArnOf(given));
}

/** The tag of the image that this project builds; undefined when another one is given. */
export function builtTag(template: Template): string | undefined {
  const { Image } = workerContainer(template);
  const built = (Image as { "Fn::Sub"?: string })["Fn::Sub"];
  return built?.slice(built.lastIndexOf(":") + 1);
}

/** The ARN of an image's repository; undefined when it is not a private one in ECR, which needs no permission. */
function repositoryArnOf(image: string): string | undefined {
  const match = /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\/([^:@]+)/.exec(image);
  return match === null ? undefined : `arn:\${AWS::Partition}:ecr:${match[2]}:${match[1]}:repository/${match[3]}`;
}

interface Statement {
  readonly Sid?: string;
  Resource?: unknown;
}

function allowPulling(template: Template, repositoryArn: string | undefined): void {
  const [policy] = propertiesOf(template, "WorkerExecutionRole")["Policies"] as {
    PolicyDocument: { Statement: Statement[] };
  }[];
  if (policy === undefined) throw new Error("WorkerExecutionRole has no policy");
  const document = policy.PolicyDocument;
  if (repositoryArn === undefined) {
    document.Statement = document.Statement.filter((statement) => statement.Sid !== "PullImage");
    return;
  }
  for (const statement of document.Statement) {
    if (statement.Sid === "PullImage") statement.Resource = { "Fn::Sub": repositoryArn };
  }
}
