import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { LambdaFunctionError, LambdaHostEndedError, startLambda, type Lambda } from "../../../local/lambda.ts";
import { readServerlessFile } from "../../../local/serverless-file.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { alive, until } from "./until.ts";

const projectRoot = path.join(import.meta.dirname, "project");
const file = readServerlessFile({ projectRoot });
const references = { ConnectionsTable: "the-table", HintQueue: "http://127.0.0.1:9/q" };
const env = { PATH: process.env["PATH"] ?? "" };

const isFunctionError = (errorType: string) => (error: unknown) =>
  error instanceof LambdaFunctionError && error.errorType === errorType && error.functionName === "probe";

describe("the host of the functions", () => {
  const pids: number[] = [];
  let lambda: Lambda;
  before(async () => {
    const debug = (fields: { pid?: number }): void => {
      if (fields.pid !== undefined) pids.push(fields.pid);
    };
    lambda = await startLambda({ file, references, env, logger: { ...silentLogger, debug } });
  });
  after(() => lambda.stop());

  it("calls the handler with the event and a context, and brings its answer back as JSON", async () => {
    const answer = (await lambda.invoke("probe", { detail: [1, "x"] })) as Record<string, unknown>;
    assert.deepEqual(answer["event"], { detail: [1, "x"] });
    assert.equal(answer["functionName"], "probe");
    assert.equal(answer["memory"], "128");
    assert.equal(answer["arn"], lambda.arnOf("probe"));
    assert.match(String(answer["requestId"]), /^[0-9a-f-]{36}$/);
    const remainingMs = Number(answer["remainingMs"]);
    assert.ok(remainingMs > 0 && remainingMs <= 1000, `${remainingMs} ms of a timeout of one second`);
    assert.ok(!("dropped" in answer), "undefined does not survive JSON");
  });

  it("gives it the environment of serverless.yml", async () => {
    assert.deepEqual(await lambda.invoke("probe", { act: "env" }), { table: "the-table" });
  });

  it("reports what the handler throws, by name", async () => {
    await assert.rejects(lambda.invoke("probe", { act: "throw" }), isFunctionError("RangeError"));
  });

  it("turns a timeout into an error", async () => {
    await assert.rejects(lambda.invoke("probe", { act: "hang" }), isFunctionError("Sandbox.Timedout"));
  });

  it("counts invocations and failures", async () => {
    const before = { ...lambda.stats["probe"] };
    await lambda.invoke("probe", {});
    await assert.rejects(lambda.invoke("probe", { act: "throw" }));
    assert.deepEqual(lambda.stats["probe"], {
      invocations: (before.invocations ?? 0) + 2,
      errors: (before.errors ?? 0) + 1,
    });
  });

  it("starts anew after a function ended its process", async () => {
    await assert.rejects(lambda.invoke("probe", { act: "exit" }), LambdaHostEndedError);
    assert.ok(await lambda.invoke("probe", {}));
  });

  it("kills a process that a function blocks past its timeout, and starts anew", async () => {
    await assert.rejects(lambda.invoke("probe", { act: "block" }), LambdaHostEndedError);
    assert.ok(await lambda.invoke("probe", {}));
  });

  it("refuses functions that serverless.yml does not have", async () => {
    await assert.rejects(lambda.invoke("nobody", {}), /serverless\.yml has no function nobody/);
  });

  it("leaves no process, and rejects what still ran", async () => {
    const before = lambda.stats["probe"]?.invocations ?? 0;
    const running = assert.rejects(lambda.invoke("probe", { act: "hang" }), LambdaHostEndedError);
    await until("the invocation to begin", () => (lambda.stats["probe"]?.invocations ?? 0) > before);
    await lambda.stop();
    await running;
    assert.deepEqual(pids.filter(alive), []);
    await assert.rejects(lambda.invoke("probe", {}), /the functions are stopped/);
  });
});

describe("a handler that cannot be loaded", () => {
  it("is an error of the invocation that names the file or the export", async (t) => {
    const [one] = file.functions;
    assert.ok(one);
    const broken = {
      ...file,
      functions: [
        { ...one, name: "no-file", handler: "functions/missing.handler" },
        { ...one, name: "no-export", handler: "functions/probe.missing" },
      ],
    };
    const lambda = await startLambda({ file: broken, references, env, logger: silentLogger });
    t.after(() => lambda.stop());
    await assert.rejects(lambda.invoke("no-file", {}), /no file .*functions\/missing with \.ts/);
    await assert.rejects(lambda.invoke("no-export", {}), /probe\.ts exports no function missing/);
  });

  it("or an environment that functions disagree about, is refused", async () => {
    const [one, two] = file.functions;
    assert.ok(one && two);
    const functions = [one, { ...two, environment: { ...two.environment, TABLE_NAME: "another" } }];
    await assert.rejects(
      startLambda({ file: { ...file, functions }, references, env, logger: silentLogger }),
      /functions\.probe\.environment\.TABLE_NAME: differs/,
    );
  });
});
