import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { ReceiveMessageCommand } from "@aws-sdk/client-sqs";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, it } from "node:test";
import { dynamoDbClient, sqsClient, type ClientLimits } from "../../../shared/aws/clients.ts";
import { release, type CallOptions, type Outcome } from "../../../shared/lease/index.ts";
import { pointSdkAt } from "../../support/embedded-dynamodb.ts";
import { startServer, type TestServer } from "../../support/http-server.ts";

const JSON_HEADERS = { "content-type": "application/x-amz-json-1.0" };
const errorBody = (name: string): string => JSON.stringify({ __type: `com.amazonaws.dynamodb#${name}`, message: name });

/** A lease operation through the SDK's real client against servers that misbehave on the wire. */
describe("limits of the DynamoDB client", { timeout: 120_000 }, () => {
  const cleanUps: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });

  const serve = async (answer: Parameters<typeof startServer>[0]): Promise<TestServer> => {
    const server = await startServer(answer);
    cleanUps.push(server.stop);
    pointSdkAt(server.url);
    return server;
  };
  const client = (limits: ClientLimits): DynamoDBClient => {
    const built = dynamoDbClient(limits);
    cleanUps.push(() => built.destroy());
    return built;
  };
  const run = (through: DynamoDBClient, options?: CallOptions): Promise<Outcome<undefined>> =>
    release({ client: through, tableName: "connections" }, { connectionId: "c", owner: "me", epoch: 1n }, options);
  const assertUnknown = (outcome: Outcome<undefined>, reason: string): void =>
    assert.equal(outcome.kind === "unknown" ? outcome.reason : outcome.kind, reason);
  const timed = async <T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> => {
    const startedMs = performance.now();
    return { result: await work(), ms: performance.now() - startedMs };
  };

  it("an attempt without an answer ends after its limit, and so does the operation after all its attempts", async () => {
    const server = await serve(() => undefined);
    const { result, ms } = await timed(() => run(client({ attemptTimeoutMs: 200, attempts: 3, maxSockets: 8 })));
    assertUnknown(result, "timeout");
    assert.equal(server.requests.length, 3);
    assert.ok(ms >= 590 && ms < 6000, `${ms} ms for 3 attempts of 200 ms`);
  });

  it("a single attempt is not resent", async () => {
    const server = await serve(() => undefined);
    assertUnknown(await run(client({ attemptTimeoutMs: 100, attempts: 1, maxSockets: 8 })), "timeout");
    assert.equal(server.requests.length, 1);
  });

  it("waiting for a free socket counts: operations behind a hanging one do not queue up their limits", async () => {
    const server = await serve(() => undefined);
    const through = client({ attemptTimeoutMs: 500, attempts: 1, maxSockets: 1 });
    const { result, ms } = await timed(() => Promise.all(Array.from({ length: 12 }, () => run(through))));
    for (const outcome of result) assertUnknown(outcome, "timeout");
    // One after the other they would take 6 s.
    assert.ok(ms < 4000, `12 operations took ${ms} ms`);
    assert.ok(server.requests.length < 12, "those that waited in vain were never sent");
  });

  it("opens no more sockets than it may, and uses them again", async () => {
    let open = 0;
    let most = 0;
    const server = await serve((response) => {
      most = Math.max(most, ++open);
      setImmediate(() => {
        open--;
        response.writeHead(200, JSON_HEADERS).end("{}");
      });
    });
    const through = client({ attemptTimeoutMs: 10_000, attempts: 1, maxSockets: 3 });
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => run(through)));
    assert.ok(outcomes.every((outcome) => outcome.kind === "held"));
    assert.equal(server.requests.length, 30);
    assert.ok(most <= 3 && server.connections.length <= 3, `${most} at once, ${server.connections.length} sockets`);
  });

  it("an answer that stalls in its middle ends after the limit too", async () => {
    const server = await serve((response) => {
      response.writeHead(200, { ...JSON_HEADERS, "content-length": "1000" }).write('{"Attributes":');
    });
    assertUnknown(await run(client({ attemptTimeoutMs: 200, attempts: 2, maxSockets: 8 })), "timeout");
    assert.equal(server.requests.length, 2);
  });

  it("an answer that never begins after its headers ends after the limit too", async () => {
    await serve((response) => {
      response.writeHead(200, { ...JSON_HEADERS, "content-length": "2" }).flushHeaders();
    });
    assertUnknown(await run(client({ attemptTimeoutMs: 200, attempts: 1, maxSockets: 8 })), "timeout");
  });

  it("the caller's own limit ends all attempts at once", async () => {
    const server = await serve(() => undefined);
    const through = client({ attemptTimeoutMs: 60_000, attempts: 3, maxSockets: 8 });
    assertUnknown(await run(through, { signal: AbortSignal.timeout(200) }), "timeout");
    assert.equal(server.requests.length, 1);
  });

  it("the caller's own limit ends an answer that stalls in its middle", async () => {
    await serve((response) => {
      response.writeHead(200, { ...JSON_HEADERS, "content-length": "1000" }).write('{"Attributes":');
    });
    const through = client({ attemptTimeoutMs: 60_000, attempts: 1, maxSockets: 8 });
    const outcome = await run(through, { signal: AbortSignal.timeout(200) });
    assert.equal(outcome.kind, "unknown");
  });

  it("the caller's own limit ends the pauses between attempts too", async () => {
    await serve((response) => response.writeHead(400, JSON_HEADERS).end(errorBody("ThrottlingException")));
    const through = client({ attemptTimeoutMs: 5000, attempts: 10, maxSockets: 8 });
    const { result, ms } = await timed(() => run(through, { signal: AbortSignal.timeout(200) }));
    assertUnknown(result, "timeout");
    assert.ok(ms < 4000, `${ms} ms`);
  });

  for (const [status, name, reason] of [
    [400, "ProvisionedThroughputExceededException", "throttled"],
    [400, "ThrottlingException", "throttled"],
    [400, "RequestLimitExceeded", "throttled"],
    [500, "InternalServerError", "server"],
    [503, "ServiceUnavailable", "server"],
  ] as const) {
    it(`${status} ${name} is tried as often as allowed and then unknown: ${reason}`, async () => {
      const server = await serve((response) => response.writeHead(status, JSON_HEADERS).end(errorBody(name)));
      assertUnknown(await run(client({ attemptTimeoutMs: 5000, attempts: 3, maxSockets: 8 })), reason);
      assert.equal(server.requests.length, 3);
    });
  }

  for (const name of ["UnrecognizedClientException", "ExpiredTokenException", "AccessDeniedException"]) {
    it(`400 ${name} is unknown: credentials`, async () => {
      await serve((response) => response.writeHead(400, JSON_HEADERS).end(errorBody(name)));
      assertUnknown(await run(client({ attemptTimeoutMs: 5000, attempts: 3, maxSockets: 8 })), "credentials");
    });
  }

  it("a page that is not DynamoDB's is not a verdict", async () => {
    await serve((response) => response.writeHead(502, { "content-type": "text/html" }).end("<html>bad gateway"));
    assertUnknown(await run(client({ attemptTimeoutMs: 5000, attempts: 1, maxSockets: 8 })), "server");
  });

  it("a throttle that ends in time is no failure", async () => {
    await serve((response, _body, n) => {
      if (n < 3) response.writeHead(400, JSON_HEADERS).end(errorBody("ThrottlingException"));
      else response.writeHead(200, JSON_HEADERS).end("{}");
    });
    assert.equal((await run(client({ attemptTimeoutMs: 5000, attempts: 3, maxSockets: 8 }))).kind, "held");
  });

  it("nobody listening is unknown: network", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    pointSdkAt(`http://127.0.0.1:${port}`);
    assertUnknown(await run(client({ attemptTimeoutMs: 5000, attempts: 2, maxSockets: 8 })), "network");
  });

  it("no credentials at all is unknown: credentials", async () => {
    const server = await serve(() => undefined);
    const none = "/nonexistent";
    const settings = { AWS_EC2_METADATA_DISABLED: "true", AWS_CONFIG_FILE: none, AWS_SHARED_CREDENTIALS_FILE: none };
    const before = { ...process.env };
    Object.assign(process.env, settings);
    delete process.env["AWS_ACCESS_KEY_ID"];
    delete process.env["AWS_SECRET_ACCESS_KEY"];
    try {
      assertUnknown(await run(client({ attemptTimeoutMs: 5000, attempts: 2, maxSockets: 8 })), "credentials");
      assert.equal(server.requests.length, 0);
    } finally {
      for (const name of Object.keys(settings)) Reflect.deleteProperty(process.env, name);
      Object.assign(process.env, before);
    }
  });

  it("an SQS client waits out a long poll shorter than its limit, at the endpoint it is given", async () => {
    const server = await serve((response) => {
      const message = { MessageId: "m", Body: "hint", MD5OfBody: createHash("md5").update("hint").digest("hex") };
      setTimeout(() => response.writeHead(200, JSON_HEADERS).end(JSON.stringify({ Messages: [message] })), 300);
    });
    process.env["AWS_ENDPOINT_URL_SQS"] = server.url;
    const sqs = sqsClient({ attemptTimeoutMs: 10_000, attempts: 1, maxSockets: 2 });
    cleanUps.push(() => sqs.destroy());
    const QueueUrl = "http://sqs.us-east-1.localhost:1/000000000000/hints";
    const { Messages } = await sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 1 }));
    assert.equal(Messages?.[0]?.MessageId, "m");
    assert.equal((JSON.parse(server.requests[0]!.body) as { QueueUrl: string }).QueueUrl, QueueUrl);
  });
});
