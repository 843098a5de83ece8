import { ECSClient, type DescribeServicesCommandInput, type DescribeServicesCommandOutput } from "@aws-sdk/client-ecs";
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { EcsRunningTasks, HttpRunningTasks } from "../../../shared/ecs/running-tasks.ts";
import { startServer, type TestServer } from "../../support/http-server.ts";

/** The real client and command, answered where they would be sent. */
function answering(output: Partial<DescribeServicesCommandOutput>): { tasks: EcsRunningTasks; inputs: unknown[] } {
  const inputs: DescribeServicesCommandInput[] = [];
  const client = new ECSClient({ region: "us-east-1" });
  client.middlewareStack.add(
    () => (args) => {
      inputs.push(args.input as DescribeServicesCommandInput);
      return Promise.resolve({ response: {}, output: { $metadata: {}, ...output } });
    },
    { step: "initialize", priority: "high" },
  );
  return { tasks: new EcsRunningTasks(client, "fleet", "workers"), inputs };
}

describe("EcsRunningTasks", () => {
  it("reads the service's running count, zero included", async () => {
    for (const runningCount of [0, 3]) {
      const { tasks, inputs } = answering({ services: [{ runningCount }] });
      assert.equal(await tasks.count(), runningCount);
      assert.deepEqual(inputs, [{ cluster: "fleet", services: ["workers"] }]);
    }
  });

  it("throws when ECS does not know the service, and says why: zero would be a lie", async () => {
    await assert.rejects(answering({ services: [], failures: [{ reason: "MISSING" }] }).tasks.count(), /MISSING/);
    await assert.rejects(answering({}).tasks.count(), /no answer/);
  });
});

describe("HttpRunningTasks", () => {
  let server: TestServer | undefined;
  afterEach(() => server?.stop());
  const tasksOf = async (answer: Parameters<typeof startServer>[0]): Promise<HttpRunningTasks> => {
    server = await startServer(answer);
    return new HttpRunningTasks(server.url, 150);
  };

  it("reads the number", async () => {
    const tasks = await tasksOf((response) => response.end('{"runningTasks":4}'));
    assert.equal(await tasks.count(), 4);
  });

  for (const [body, status] of [
    ["{}", 200],
    ['{"runningTasks":"4"}', 200],
    ['{"runningTasks":-1}', 200],
    ['{"runningTasks":1.5}', 200],
    ["null", 200],
    ["four", 200],
    ['{"runningTasks":4}', 500],
  ] as const) {
    it(`throws on ${status} ${body}`, async () => {
      const tasks = await tasksOf((response) => response.writeHead(status).end(body));
      await assert.rejects(tasks.count());
    });
  }

  it("throws when no answer comes in time", async () => {
    const tasks = await tasksOf(() => undefined);
    await assert.rejects(tasks.count(), { name: "TimeoutError" });
  });
});
