import { ECRClient } from "@aws-sdk/client-ecr";
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import { dockerCommand } from "../../deploy/plugins/docker.ts";
import { ImageRepository } from "../../deploy/plugins/image-repository.ts";
import type { Template } from "../../deploy/plugins/osls.ts";
import { builtTag, nameImage, provideImage } from "../../deploy/plugins/worker-image.ts";

const REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com";

/** ECR's wire protocol, as far as the plugin speaks it: one repository that is there or not, and tags in it. */
async function startEcr(t: TestContext, state: { repository: boolean; tags: string[] }) {
  const asked: string[] = [];
  const answer = (operation: string, input: { imageIds?: { imageTag: string }[] }): [number, object] => {
    const missing = { __type: "RepositoryNotFoundException" };
    switch (operation) {
      case "DescribeImages": {
        if (!state.repository) return [400, missing];
        const found = (input.imageIds ?? []).filter(({ imageTag }) => state.tags.includes(imageTag));
        return found.length > 0 ? [200, { imageDetails: found }] : [400, { __type: "ImageNotFoundException" }];
      }
      case "CreateRepository":
        if (state.repository) return [400, { __type: "RepositoryAlreadyExistsException" }];
        state.repository = true;
        return [200, { repository: {} }];
      case "PutLifecyclePolicy":
        return state.repository ? [200, {}] : [400, missing];
      case "GetAuthorizationToken": {
        const authorizationToken = Buffer.from("AWS:the-token").toString("base64");
        return [200, { authorizationData: [{ authorizationToken, proxyEndpoint: `https://${REGISTRY}` }] }];
      }
      case "DeleteRepository":
        if (!state.repository) return [400, missing];
        state.repository = false;
        return [200, {}];
      default:
        return [400, { __type: "UnknownOperationException" }];
    }
  };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const operation = String(request.headers["x-amz-target"]).split(".").at(-1) ?? "";
      asked.push(operation);
      const [status, output] = answer(operation, JSON.parse(body) as object);
      response.writeHead(status, { "content-type": "application/x-amz-json-1.1" }).end(JSON.stringify(output));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new ECRClient({
    region: "us-east-1",
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
  });
  t.after(() => {
    client.destroy();
    server.close();
    server.closeAllConnections();
  });
  return { asked, state, repository: new ImageRepository(client, "ws-fleet-some-worker") };
}

/** A `docker` on PATH that writes down what it is asked, and what it reads; `failing` is the command that fails. */
function fakeDocker(t: TestContext, failing = "none") {
  const folder = mkdtempSync(path.join(tmpdir(), "ws-fleet-docker-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const log = path.join(folder, "log");
  writeFileSync(log, "");
  const script = `#!/bin/sh
echo "$@" >> "${log}"
case "$1" in login) cat >> "${log}"; echo >> "${log}";; esac
if [ "$1" = "${failing}" ]; then echo "Cannot connect to the Docker daemon" >&2; exit 1; fi
`;
  writeFileSync(path.join(folder, "docker"), script);
  chmodSync(path.join(folder, "docker"), 0o755);
  const docker = dockerCommand({ PATH: `${folder}:${process.env["PATH"] ?? ""}` });
  return { docker, said: () => readFileSync(log, "utf8").trim().split("\n") };
}

const log = { notice: () => undefined, info: () => undefined };
const request = { folder: "/the/project", wanted: "sha-1", offered: "sha-1", name: "ws-fleet-some-worker" };

describe("providing the worker's image", () => {
  it("makes the repository, builds for arm64, pushes, and leaves no login behind", async (t) => {
    const ecr = await startEcr(t, { repository: false, tags: [] });
    const { docker, said } = fakeDocker(t);
    await provideImage({ repository: ecr.repository, docker, log }, request);
    assert.deepEqual(ecr.asked, ["DescribeImages", "CreateRepository", "PutLifecyclePolicy", "GetAuthorizationToken"]);
    const image = `${REGISTRY}/ws-fleet-some-worker:sha-1`;
    assert.deepEqual(said().slice(2), [
      `buildx build --platform linux/arm64 --provenance=false --load --tag ${image} /the/project`,
      `login --username AWS --password-stdin ${REGISTRY}`,
      "the-token",
      `push ${image}`,
      `logout ${REGISTRY}`,
    ]);
  });

  it("uses a repository that is there", async (t) => {
    const ecr = await startEcr(t, { repository: true, tags: ["sha-0"] });
    await provideImage({ repository: ecr.repository, docker: fakeDocker(t).docker, log }, request);
    assert.ok(ecr.asked.includes("CreateRepository"));
  });

  it("needs no Docker when the same content was pushed before", async (t) => {
    const ecr = await startEcr(t, { repository: true, tags: ["sha-1"] });
    const { docker, said } = fakeDocker(t, "version");
    await provideImage({ repository: ecr.repository, docker, log }, { ...request, offered: "sha-2" });
    assert.deepEqual(ecr.asked, ["DescribeImages"]);
    assert.deepEqual(said(), [""]);
  });

  for (const failing of ["version", "buildx"]) {
    it(`creates nothing when docker ${failing} fails, and says what to do`, async (t) => {
      const ecr = await startEcr(t, { repository: false, tags: [] });
      const { docker } = fakeDocker(t, failing);
      await assert.rejects(
        provideImage({ repository: ecr.repository, docker, log }, request),
        /Cannot connect to the Docker daemon\nNothing was deployed.*--param="workerImage=/s,
      );
      assert.equal(ecr.state.repository, false);
    });
  }

  it("creates nothing without a docker command", async (t) => {
    const ecr = await startEcr(t, { repository: false, tags: [] });
    const docker = dockerCommand({ PATH: "/nowhere" });
    const providing = provideImage({ repository: ecr.repository, docker, log }, request);
    await assert.rejects(providing, /docker cannot be run/);
    assert.equal(ecr.state.repository, false);
  });

  it("refuses a package whose sources have changed since", async (t) => {
    const ecr = await startEcr(t, { repository: true, tags: [] });
    const changed = { ...request, offered: "sha-2" };
    const providing = provideImage({ repository: ecr.repository, docker: fakeDocker(t).docker, log }, changed);
    await assert.rejects(providing, /made for the image sha-1.*now sha-2: package again/);
  });

  it("leaves no login behind when the push fails", async (t) => {
    const ecr = await startEcr(t, { repository: true, tags: [] });
    const { docker, said } = fakeDocker(t, "push");
    await assert.rejects(
      provideImage({ repository: ecr.repository, docker, log }, request),
      /docker push ended with 1/,
    );
    assert.equal(said().at(-1), `logout ${REGISTRY}`);
  });
});

describe("removing the repository", () => {
  it("is repeatable", async (t) => {
    const { repository } = await startEcr(t, { repository: true, tags: ["sha-1"] });
    assert.equal(await repository.remove(), true);
    assert.equal(await repository.remove(), false);
  });
});

describe("naming the image", () => {
  const template = (image: string): Template => ({
    Resources: {
      WorkerTask: {
        Type: "AWS::ECS::TaskDefinition",
        Properties: { ContainerDefinitions: [{ Name: "worker", Image: image, Environment: [] }] },
      },
      WorkerExecutionRole: {
        Type: "AWS::IAM::Role",
        Properties: {
          Policies: [
            { PolicyDocument: { Statement: [{ Sid: "Other" }, { Sid: "PullImage", Resource: "our repository" }] } },
          ],
        },
      },
    },
  });
  const statementsOf = ({ Resources }: Template): unknown => {
    const policies = Resources["WorkerExecutionRole"]?.Properties?.["Policies"];
    return (policies as { PolicyDocument: { Statement: unknown } }[])[0]?.PolicyDocument.Statement;
  };

  it("names our own by its content", () => {
    const ours = template("");
    nameImage(ours, "ws-fleet-some-worker", "sha-1");
    assert.equal(builtTag(ours), "sha-1");
    assert.deepEqual(statementsOf(ours), [{ Sid: "Other" }, { Sid: "PullImage", Resource: "our repository" }]);
  });

  it("lets ECS pull a given one from its own repository", () => {
    const given = template("210987654321.dkr.ecr.eu-west-1.amazonaws.com/team/worker:v1");
    nameImage(given, "ws-fleet-some-worker", "sha-1");
    assert.equal(builtTag(given), undefined);
    const Resource = { "Fn::Sub": "arn:${AWS::Partition}:ecr:eu-west-1:210987654321:repository/team/worker" };
    assert.deepEqual(statementsOf(given), [{ Sid: "Other" }, { Sid: "PullImage", Resource }]);
  });

  it("allows no pulling when it comes from a public registry", () => {
    const given = template("public.ecr.aws/team/worker:v1");
    nameImage(given, "ws-fleet-some-worker", "sha-1");
    assert.equal(builtTag(given), undefined);
    assert.deepEqual(statementsOf(given), [{ Sid: "Other" }]);
  });
});
