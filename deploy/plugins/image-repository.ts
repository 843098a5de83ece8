import {
  CreateRepositoryCommand,
  DeleteRepositoryCommand,
  DescribeImagesCommand,
  GetAuthorizationTokenCommand,
  ImageNotFoundException,
  PutLifecyclePolicyCommand,
  RepositoryAlreadyExistsException,
  RepositoryNotFoundException,
  type ECRClient,
} from "@aws-sdk/client-ecr";

export interface RegistryLogin {
  readonly registry: string;
  readonly user: string;
  readonly password: string;
}

/** Enough to roll back by; older images go. */
const KEPT_IMAGES = 20;

/**
 * The worker's repository in ECR. It is made before the stack, since the service needs an image to start from, and so is
 * no part of it.
 */
export class ImageRepository {
  readonly #client: ECRClient;
  readonly #name: string;

  constructor(client: ECRClient, name: string) {
    this.#client = client;
    this.#name = name;
  }

  /** False as well when there is no repository. @throws what the SDK throws. */
  async has(tag: string): Promise<boolean> {
    try {
      const { imageDetails } = await this.#client.send(
        new DescribeImagesCommand({ repositoryName: this.#name, imageIds: [{ imageTag: tag }] }),
      );
      return imageDetails?.length === 1;
    } catch (error) {
      if (error instanceof ImageNotFoundException || error instanceof RepositoryNotFoundException) return false;
      throw error;
    }
  }

  /** Repeatable. @throws what the SDK throws. */
  async ensure(): Promise<void> {
    try {
      await this.#client.send(
        new CreateRepositoryCommand({
          repositoryName: this.#name,
          // A tag names a content: nobody may push another one under it.
          imageTagMutability: "IMMUTABLE",
          imageScanningConfiguration: { scanOnPush: true },
        }),
      );
    } catch (error) {
      if (!(error instanceof RepositoryAlreadyExistsException)) throw error;
    }
    const rule = {
      rulePriority: 1,
      description: `keep ${KEPT_IMAGES} images`,
      selection: { tagStatus: "any", countType: "imageCountMoreThan", countNumber: KEPT_IMAGES },
      action: { type: "expire" },
    };
    await this.#client.send(
      new PutLifecyclePolicyCommand({
        repositoryName: this.#name,
        lifecyclePolicyText: JSON.stringify({ rules: [rule] }),
      }),
    );
  }

  /** @throws what the SDK throws. */
  async login(): Promise<RegistryLogin> {
    const { authorizationData } = await this.#client.send(new GetAuthorizationTokenCommand({}));
    const [data] = authorizationData ?? [];
    const [user, password] = Buffer.from(data?.authorizationToken ?? "", "base64")
      .toString()
      .split(":");
    if (data?.proxyEndpoint === undefined || user === undefined || password === undefined) {
      throw new Error("ECR gave no authorization token");
    }
    return { registry: new URL(data.proxyEndpoint).host, user, password };
  }

  /** With all images. @returns false when there was none. @throws what the SDK throws. */
  async remove(): Promise<boolean> {
    try {
      await this.#client.send(new DeleteRepositoryCommand({ repositoryName: this.#name, force: true }));
      return true;
    } catch (error) {
      if (error instanceof RepositoryNotFoundException) return false;
      throw error;
    }
  }
}
