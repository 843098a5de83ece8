import { PutItemCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { EventEmitter, once } from "node:events";
import path from "node:path";
import { describe, it } from "node:test";
import { readServerlessFile } from "../../../local/serverless-file.ts";
import { leaseOf } from "../../../shared/connection/item.ts";
import { supervise } from "../../../worker/supervision/supervise.ts";
import { recordingLogger } from "../../functions/support/log.ts";
import { FakeDynamoDb } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const SETTINGS = { releasesPerSecond: 300, attempts: 3, stopTimeoutMs: 120_000, drainBudgetMs: 60_000 };

/** A supervisor of a small program, over an in-memory table. */
class Watch {
  readonly clock = new VirtualClock();
  readonly db: FakeDynamoDb;
  readonly logger = recordingLogger();
  readonly signals = new EventEmitter();
  readonly child: ChildProcess;
  requests = 0;
  /** Set once the supervisor would leave. */
  code: number | undefined;
  readonly #tableName: string;
  readonly #exited: Promise<unknown>;

  constructor(program: string, indexLagMs = 0) {
    const { clock } = this;
    const { tables } = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../../..") });
    const definition = tables.find((table) => table.logicalId === "ConnectionsTable");
    assert.ok(definition);
    this.#tableName = definition.tableName;
    this.db = new FakeDynamoDb({ clock, tables: [definition.createInput], indexLagMs });
    this.child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    this.#exited = once(this.child, "exit");
    this.db.faults = ({ operation }) => {
      if (operation !== "PutItem") this.requests++;
      return undefined;
    };
    void supervise({
      task: "task-1",
      table: { client: this.db.client(), tableName: this.#tableName },
      clock,
      logger: this.logger,
      settings: SETTINGS,
      signals: this.signals,
      spawn: () => this.child,
    }).then((code) => (this.code = code));
  }

  /** Waits for the child's end, lets time pass until the supervisor would leave, and gives its code. */
  async left(): Promise<number | undefined> {
    await this.#exited;
    await this.clock.advanceUntil(() => this.code !== undefined, 11_000);
    return this.code;
  }

  async held(id: string, owner = "task-1"): Promise<void> {
    await this.db.client().send(
      new PutItemCommand({
        TableName: this.#tableName,
        Item: {
          connection_id: { S: id },
          desired_state: { S: "STARTED" },
          lease_owner: { S: owner },
          lease_epoch: { N: "5" },
          lease_expires_at_ms: { N: String(Date.UTC(2026, 0, 2)) },
          last_seq: { N: "77" },
        },
      }),
    );
  }

  lease(id: string): ReturnType<typeof leaseOf> {
    return leaseOf(this.db.items(this.#tableName).find((item) => item["connection_id"]?.S === id) ?? {});
  }
}

/** Says so when it can take signals. */
const READY = 'process.stdout.write("ready\\n"); setInterval(() => {}, 1000);';

describe("the supervisor of a worker", () => {
  for (const [program, code] of [
    ["process.exit(7)", 7],
    ["process.exitCode = 1", 1],
    ["process.kill(process.pid, 'SIGKILL')", 137],
    ["process.kill(process.pid, 'SIGABRT')", 134],
    ["process.exit(3)", 3],
    ["process.exit(0)", 0],
  ] as const) {
    it(`frees the leases of one that ended by itself, and leaves with its code: ${program}`, async () => {
      const watch = new Watch(program);
      await watch.held("a");
      await watch.held("b");
      await watch.held("theirs", "task-2");
      assert.equal(await watch.left(), code);
      for (const id of ["a", "b"]) {
        assert.deepEqual(
          [watch.lease(id).owner, watch.lease(id).expiresAtMs, watch.lease(id).epoch],
          [undefined, 0, 5n],
        );
      }
      assert.equal(watch.lease("theirs").owner, "task-2");
    });
  }

  it("leaves a worker alone that refused its settings: it never held anything", async () => {
    const watch = new Watch("process.exit(2)");
    assert.equal(await watch.left(), 2);
    assert.equal(watch.requests, 0);
  });

  it("passes signals on, and trusts a worker that was asked to end and says that it gave everything back", async () => {
    const watch = new Watch(`process.on("SIGTERM", () => process.exit(0)); ${READY}`);
    await once(watch.child.stdout!, "data");
    watch.signals.emit("SIGTERM", "SIGTERM");
    watch.signals.emit("SIGTERM", "SIGTERM");
    assert.equal(await watch.left(), 0);
    assert.equal(watch.requests, 0);
  });

  it("kills one that was asked to end and does not, while there is still time to free its leases", async () => {
    const watch = new Watch(`process.on("SIGTERM", () => process.stdout.write("no\\n")); ${READY}`);
    await watch.held("a");
    await once(watch.child.stdout!, "data");
    watch.signals.emit("SIGTERM", "SIGTERM");
    await once(watch.child.stdout!, "data");
    await watch.clock.advance(SETTINGS.stopTimeoutMs - 5000 - 1);
    const killed = (): boolean => watch.logger.lines.some(({ message }) => message.includes("killed"));
    assert.equal(killed(), false);
    await watch.clock.advance(1);
    assert.equal(killed(), true);
    const killedAtMs = watch.clock.monotonicMs();
    assert.equal(await watch.left(), 137);
    assert.ok(watch.clock.monotonicMs() - killedAtMs <= 4000, "before the orchestrator's own SIGKILL");
    assert.equal(watch.lease("a").owner, undefined);
  });

  it("looks again for what the index did not show at first", async () => {
    const watch = new Watch("process.exit(9)", 900);
    await watch.held("late");
    assert.equal(await watch.left(), 9);
    assert.equal(watch.lease("late").owner, undefined);
  });

  it("ends although the store is away: the leases expire", async () => {
    const watch = new Watch("process.exit(9)");
    watch.db.faults = () => ({ kind: "throttle" });
    assert.equal(await watch.left(), 9);
    assert.equal(watch.logger.lines.filter(({ level }) => level === "warn").length, 3);
  });

  it("ends although the store never answers", async () => {
    const watch = new Watch("process.exit(9)");
    watch.db.faults = () => ({ kind: "no-answer" });
    assert.equal(await watch.left(), 9);
  });
});
