import fc from "fast-check";
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { demoOptions } from "../../local/cli/demo-options.ts";
import { startOptions } from "../../local/cli/start-options.ts";
import { HelpShown, UsageError } from "../../local/cli/usage.ts";
import { simulateOptions } from "../simulation/options.ts";

type Env = Readonly<Record<string, string | undefined>>;

const COMMANDS: Readonly<Record<string, (argv: readonly string[], env: Env) => object>> = {
  demo: demoOptions,
  start: startOptions,
  simulate: (argv) => simulateOptions(argv),
};

/** Files are named relative to a folder that is empty before and after. */
let folder: string;
const home = process.cwd();
before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-fuzz-"));
  process.chdir(folder);
});
after(async () => {
  process.chdir(home);
  await rm(folder, { recursive: true });
});

const FLAGS = [
  ...["--connections", "--workers", "--seconds", "--rate", "--crash", "--kill", "--term", "--freeze", "--event-delay"],
  ...["--no-task-events", "--no-stream", "--no-queue", "--seed", "--json", "--minutes", "--seeds", "--from"],
  ...["--history", "--keep-going", "--tally", "--help", "-h", "--", "-", "-x", "--no-json", "--no-seed", "--__proto__"],
];
const number = fc.oneof(
  fc.integer({ min: -2, max: 6000 }).map(String),
  fc.double().map(String),
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(String),
  fc.constantFrom("", " ", "1e3", "0x10", "٣", "1.", ".5", "+5", "NaN", "Infinity", "2147483648", "9007199254740993"),
);
const name = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "ü", " ", "\u0000", "\n", ".", "-"), maxLength: 5 }),
  fc.constantFrom("__proto__", "a".repeat(300), "no/such/folder/a", `${"a/".repeat(2100)}a`, ".", "out.json"),
);
const token = fc.oneof(
  fc.constantFrom(...FLAGS),
  number,
  name,
  fc.tuple(fc.constantFrom(...FLAGS), fc.oneof(number, name)).map(([flag, value]) => `${flag}=${value}`),
);
/** Options with something behind them, more often than by chance. */
const argv = fc
  .array(
    fc.oneof(
      token.map((one) => [one]),
      fc.tuple(fc.constantFrom(...FLAGS), fc.oneof(number, name)),
    ),
    { maxLength: 5 },
  )
  .map((parts) => parts.flat());

const SETTINGS = [
  "WS_FLEET_LEASE_MS",
  "WS_FLEET_LOG_LEVEL",
  "WS_FLEET_TASK_ID",
  "WS_FLEET_MAX_CONNECTIONS",
  "WS_FLEET_",
];
const env: fc.Arbitrary<Env> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  fc.dictionary(
    fc.oneof(
      fc.constantFrom(...SETTINGS, "AWS_ENDPOINT_URL_SQS"),
      fc.string().map((rest) => `WS_FLEET_${rest}`),
    ),
    fc.oneof(number, name),
    { maxKeys: 3, noNullPrototype: false },
  ),
);

/** What the command makes of it: its options, or why it ends with 2. Anything else fails the property. */
function outcomeOf(command: string, args: readonly string[], settings: Env): object | UsageError | "help" {
  try {
    return COMMANDS[command]?.(args, settings) ?? assert.fail(command);
  } catch (error) {
    if (error instanceof HelpShown) return "help";
    if (error instanceof UsageError) return error;
    throw error;
  }
}

/** Help is printed by the parser; here nobody reads it. */
function quietly<T>(run: () => T): T {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = () => true;
  try {
    return run();
  } finally {
    process.stdout.write = write;
  }
}

describe("a command line of any words", () => {
  for (const command of Object.keys(COMMANDS)) {
    it(`gives options of ${command} in their bounds, its help, or an error that names what is wrong`, async () => {
      let [accepted, refused] = [0, 0];
      fc.assert(
        fc.property(argv, env, (args, settings) => {
          const outcome = quietly(() => outcomeOf(command, args, settings));
          if (outcome === "help") assert.ok(args.some((arg) => arg === "-h" || arg.startsWith("--help")));
          else if (outcome instanceof UsageError) {
            refused++;
            const known = [...args, ...FLAGS, ...Object.keys(settings)].filter((word) => word.length > 1);
            const names = known.some((word) => outcome.message.includes(word.split("=")[0] ?? word));
            assert.ok(names || outcome.message.includes("argument"), `of ${args.join(" ")}: ${outcome.message}`);
          } else {
            accepted++;
            for (const value of Object.values(outcome)) {
              if (typeof value === "number")
                assert.ok(Number.isSafeInteger(value * 1000) || value % 1 !== 0, `${value}`);
            }
          }
        }),
        { numRuns: 2500 },
      );
      assert.ok(accepted > 20 && refused > 20, `${accepted} accepted, ${refused} refused: one of them is not tried`);
      assert.deepEqual(await readdir(folder), [], "checking a path leaves nothing behind");
    });
  }
});
