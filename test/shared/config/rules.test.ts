import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compileSettings, ConfigurationError } from "../../../shared/config/compile.ts";
import { DEFINITIONS, type SettingName } from "../../../shared/config/definitions.ts";
import { RULES, type Rule } from "../../../shared/config/rules.ts";

type Values = Partial<Record<SettingName, string>>;

interface Case {
  readonly rule: string;
  /** Everything else stays at its default. */
  readonly broken: readonly Values[];
  /** As near to the limit as whole units allow. */
  readonly justHolds: readonly Values[];
}

/** By the settings a rule uses, which name it. */
const CASES: readonly Case[] = [
  {
    rule: "heartbeatMs,heartbeatJitter,attempts,attemptTimeoutMs,leaseMs,marginMs",
    broken: [{ leaseMs: "18000" }, { heartbeatMs: "6000" }, { heartbeatJitter: "0.4" }, { attempts: "5" }],
    justHolds: [{ leaseMs: "18001" }, { attemptTimeoutMs: "1666" }, { heartbeatJitter: "0.39" }, { marginMs: "4999" }],
  },
  { rule: "marginMs,skewMs", broken: [{ marginMs: "2000" }, { skewMs: "1500" }], justHolds: [{ marginMs: "2001" }] },
  {
    rule: "targetConnections,maxConnections",
    broken: [{ targetConnections: "801" }, { maxConnections: "874" }, { targetConnections: "1000" }],
    justHolds: [{ targetConnections: "800" }, { maxConnections: "875" }],
  },
  {
    rule: "hintVisibilityMs,acquireBudgetMs",
    broken: [{ acquireBudgetMs: "3000" }, { hintVisibilityMs: "2000" }],
    justHolds: [{ acquireBudgetMs: "2999" }],
  },
  {
    rule: "acquireBudgetMs,leaseMs,marginMs",
    broken: [{ acquireBudgetMs: "17000", hintVisibilityMs: "18000" }],
    justHolds: [{ acquireBudgetMs: "16999", hintVisibilityMs: "17000" }],
  },
  { rule: "hintVisibilityMs", broken: [{ hintVisibilityMs: "3001" }], justHolds: [{ hintVisibilityMs: "4000" }] },
  { rule: "longPollMs", broken: [{ longPollMs: "10500" }], justHolds: [{ longPollMs: "11000" }, { longPollMs: "0" }] },
  {
    rule: "drainBudgetMs,stopTimeoutMs",
    broken: [{ drainBudgetMs: "115000" }, { stopTimeoutMs: "65000" }],
    justHolds: [{ drainBudgetMs: "114999" }, { stopTimeoutMs: "65001" }],
  },
  {
    rule: "closeGraceMs,drainBudgetMs",
    broken: [{ closeGraceMs: "60000" }],
    justHolds: [{ closeGraceMs: "59999" }],
  },
  {
    rule: "pingIntervalMs,idleTimeoutMs",
    broken: [{ pingIntervalMs: "30000" }, { idleTimeoutMs: "40000" }],
    justHolds: [{ pingIntervalMs: "29999" }, { idleTimeoutMs: "40001" }],
  },
  {
    rule: "reconnectBaseMs,reconnectCapMs",
    broken: [{ reconnectBaseMs: "10001" }],
    justHolds: [{ reconnectBaseMs: "10000" }],
  },
  {
    rule: "parkBaseMs,fatalParkMs,maxParkMs",
    broken: [{ parkBaseMs: "3600001" }, { fatalParkMs: "3600001" }, { maxParkMs: "899999" }],
    justHolds: [{ parkBaseMs: "3600000" }, { fatalParkMs: "3600000" }, { maxParkMs: "900000" }],
  },
  { rule: "sweepMs", broken: [{ sweepMs: "60001" }], justHolds: [{ sweepMs: "60000" }] },
  { rule: "metricsMs", broken: [{ metricsMs: "60001" }], justHolds: [{ metricsMs: "60000" }] },
];

const PLACES: Values = {
  connectionsTable: "connections",
  messagesTable: "messages",
  hintQueueUrl: "http://127.0.0.1:4566/0/hints",
  dlqUrl: "http://127.0.0.1:4566/0/dead",
  serviceName: "workers",
  clusterName: "fleet",
};
const ALL = Object.keys(DEFINITIONS) as SettingName[];
const environment = (values: Values): Record<string, string> =>
  Object.fromEntries(
    Object.entries({ ...PLACES, ...values }).map(([name, value]) => [DEFINITIONS[name as SettingName].env, value]),
  );
const nameOf = (rule: Rule): string => rule.uses.join(",");

describe("configuration rules", () => {
  it("every rule has a case here, and every case a rule", () => {
    assert.deepEqual(
      CASES.map(({ rule }) => rule),
      RULES.map(nameOf),
    );
  });

  it("the defaults hold", () => {
    assert.doesNotThrow(() => compileSettings(environment({}), ALL));
  });

  for (const { rule, broken, justHolds } of CASES) {
    describe(rule, () => {
      for (const values of broken) {
        it(`refuses ${JSON.stringify(values)} and names the variables`, () => {
          assert.throws(
            () => compileSettings(environment(values), ALL),
            (error: unknown) => {
              assert.ok(error instanceof ConfigurationError);
              const found = RULES.find((candidate) => nameOf(candidate) === rule);
              const problem = error.problems.find((text) => found !== undefined && text.endsWith(`: ${found.text}`));
              assert.ok(problem !== undefined, `another rule: ${error.problems.join("; ")}`);
              for (const name of rule.split(",")) assert.ok(problem.includes(DEFINITIONS[name as SettingName].env));
              return true;
            },
          );
        });
      }
      for (const values of justHolds) {
        it(`accepts ${JSON.stringify(values)}`, () => {
          assert.doesNotThrow(() => compileSettings(environment(values), ALL));
        });
      }

      it("is not asked of a program that uses only part of it", () => {
        const names = rule.split(",") as SettingName[];
        for (const left of names) {
          const used = names.filter((name) => name !== left);
          for (const values of broken) assert.doesNotThrow(() => compileSettings(environment(values), used));
        }
      });
    });
  }
});
