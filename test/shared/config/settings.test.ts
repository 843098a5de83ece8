import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compileSettings, ConfigurationError } from "../../../shared/config/compile.ts";
import { DEFINITIONS, type Definition, type SettingName } from "../../../shared/config/definitions.ts";

const NO_NUMBERS = ["", " ", "-1", "+1", "1.5", "1e3", " 5", "5 ", "0x10", "٣", "abc", "NaN", "Infinity"];
const integer = (min: number, max: number) => ({
  good: [String(min), String(max)],
  bad: [...NO_NUMBERS, String(min - 1), String(max + 1), "9".repeat(20)],
});
const DAY_MS = 86_400_000;
const MS = integer(1, DAY_MS);
const SECOND_AND_MORE = integer(1000, DAY_MS);
const NAME = { good: ["a", "ws-fleet-prod"], bad: [""] };
const URL_BAD = ["queue", "ftp://127.0.0.1/", "://", "file:///etc/passwd", "javascript:alert(1)"];
const URL = { good: ["http://127.0.0.1:1/x", "https://sqs.us-east-1.amazonaws.com/1/q"], bad: [...URL_BAD, ""] };
const OPTIONAL_URL = { good: ["", ...URL.good], bad: URL_BAD };
const ANYTHING = { good: ["", "whatever"], bad: [] };

/** A setting without an entry here does not compile, and would fail the first test. */
const VALUES: Record<SettingName, { readonly good: readonly string[]; readonly bad: readonly string[] }> = {
  leaseMs: MS,
  heartbeatMs: MS,
  heartbeatJitter: { good: ["0", "0.2", ".5", "1", "1.0"], bad: ["", "-0.1", "1.1", "2", "0,2", "1e-1", "a", "."] },
  marginMs: MS,
  skewMs: integer(0, DAY_MS),
  attemptTimeoutMs: MS,
  attempts: integer(1, 10),
  // Longer sweeps are refused by a rule.
  sweepMs: { ...SECOND_AND_MORE, good: ["1000", "60000"] },
  metricsMs: { ...SECOND_AND_MORE, good: ["1000", "60000"] },
  maxParkMs: SECOND_AND_MORE,
  connectionsTable: NAME,
  messagesTable: NAME,
  hintQueueUrl: URL,
  dlqUrl: URL,
  serviceName: NAME,
  clusterName: NAME,
  metricsUrl: OPTIONAL_URL,
  runningTasksUrl: OPTIONAL_URL,
  logLevel: { good: ["trace", "info", "fatal", "silent"], bad: ["", "INFO", "verbose"] },
  targetConnections: integer(1, 100_000),
  maxConnections: integer(1, 100_000),
  hintVisibilityMs: integer(1000, 43_200_000),
  longPollMs: integer(0, 20_000),
  acquireBudgetMs: MS,
  acquiresPerSecond: integer(1, 10_000),
  dialsPerSecond: integer(1, 10_000),
  maxConcurrentDials: integer(1, 10_000),
  maxConcurrentLeaseOps: integer(1, 1000),
  quietQueueMs: SECOND_AND_MORE,
  handshakeTimeoutMs: MS,
  pingIntervalMs: MS,
  idleTimeoutMs: MS,
  maxMessageBytes: integer(1, 134_217_728),
  unfinishedMaxBytes: integer(1_048_576, 4_294_967_296),
  reconnectBaseMs: MS,
  reconnectCapMs: MS,
  connectGiveUpMs: MS,
  parkBaseMs: MS,
  fatalParkMs: MS,
  healthyMs: MS,
  closeGraceMs: MS,
  stopTimeoutMs: MS,
  drainBudgetMs: MS,
  writerMaxBytes: integer(1_048_576, 4_294_967_296),
  writerMaxItems: integer(100, 10_000_000),
  writerLingerMs: integer(0, 1000),
  writerConcurrency: integer(1, 128),
  messageTtlSeconds: integer(60, 315_360_000),
  releasesPerSecond: integer(1, 10_000),
  healthPort: integer(0, 65_535),
  taskId: ANYTHING,
  journalFile: ANYTHING,
};

const ALL = Object.keys(DEFINITIONS) as SettingName[];
const definitionOf = (name: SettingName): Definition => DEFINITIONS[name];

describe("settings", () => {
  it("every setting has values here", () => {
    assert.deepEqual(Object.keys(VALUES), ALL);
  });

  it("every setting has one variable of the project's prefix, its unit in both names, and a meaning", () => {
    const variables = ALL.map((name) => definitionOf(name).env);
    assert.equal(new Set(variables).size, variables.length);
    for (const name of ALL) {
      const { env, meaning } = definitionOf(name);
      assert.match(env, /^WS_FLEET_[A-Z]+(_[A-Z]+)*$/);
      for (const unit of ["Ms", "Seconds", "Bytes"]) {
        assert.equal(name.endsWith(unit), env.endsWith(`_${unit.toUpperCase()}`), `${name} is ${env}`);
      }
      assert.match(meaning, /^[A-Z].*\.$/s);
    }
  });

  for (const name of ALL) {
    const { env, default: fallback } = definitionOf(name);
    it(`${env} takes what is right and refuses the rest by name`, () => {
      for (const text of VALUES[name].good) {
        assert.doesNotThrow(() => compileSettings({ [env]: text }, [name]), `${env}=${JSON.stringify(text)}`);
      }
      for (const text of VALUES[name].bad) {
        assert.throws(
          () => compileSettings({ [env]: text }, [name]),
          (error: unknown) =>
            error instanceof ConfigurationError &&
            error.problems.length === 1 &&
            error.problems[0]!.startsWith(`${env}=${JSON.stringify(text)}: must`),
          `${env}=${JSON.stringify(text)}`,
        );
      }
    });

    it(`${env} ${fallback === undefined ? "must be set" : "has a default that is right"}`, () => {
      if (fallback !== undefined) {
        assert.deepEqual(compileSettings({}, [name]), compileSettings({ [env]: fallback }, [name]));
        return;
      }
      for (const environment of [{}, { [env]: undefined }]) {
        assert.throws(
          () => compileSettings(environment, [name]),
          (error: unknown) =>
            error instanceof ConfigurationError && error.problems[0]!.startsWith(`${env}: must be set`),
        );
      }
    });
  }

  it("numbers come as numbers, text as text", () => {
    const settings = compileSettings({ WS_FLEET_LEASE_MS: "30000", WS_FLEET_TASK_ID: "7" }, [
      "leaseMs",
      "heartbeatJitter",
      "taskId",
    ]);
    assert.deepEqual(settings, { leaseMs: 30_000, heartbeatJitter: 0.2, taskId: "7" });
  });

  it("an unknown variable of the project's prefix is refused by name: a typo leaves no default in force", () => {
    for (const typo of ["WS_FLEET_LEASE", "WS_FLEET_HEARTBEAT_SECONDS", "WS_FLEET_lease_ms", "WS_FLEET_"]) {
      assert.throws(
        () => compileSettings({ [typo]: "1" }, ["leaseMs"]),
        (error: unknown) => error instanceof ConfigurationError && error.problems.join() === `${typo}: no such setting`,
      );
    }
  });

  it("other variables are nobody's business, and neither are values of settings that are not used", () => {
    const environment = { PATH: "/bin", LEASE_MS: "x", AWS_REGION: "", WS_FLEET_HEALTH_PORT: "not used here" };
    assert.deepEqual(compileSettings(environment, ["leaseMs"]), { leaseMs: 20_000 });
  });

  it("all problems come at once, each on a line of its own", () => {
    const environment = { WS_FLEET_LEASE_MS: "long", WS_FLEET_TYPO: "1" };
    assert.throws(
      () => compileSettings(environment, ["leaseMs", "connectionsTable"]),
      (error: unknown) => {
        assert.ok(error instanceof ConfigurationError);
        assert.equal(error.problems.length, 3);
        assert.equal(error.message.split("\n").length, 4);
        for (const name of ["WS_FLEET_TYPO", "WS_FLEET_LEASE_MS", "WS_FLEET_CONNECTIONS_TABLE"]) {
          assert.ok(error.message.includes(name));
        }
        return true;
      },
    );
  });
});
