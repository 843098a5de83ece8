import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { describe, it } from "node:test";
import { simulateOptions } from "./options.ts";
import { Progress } from "./progress.ts";

const refused = (line: string, message: RegExp): void =>
  assert.throws(
    () => simulateOptions(line.split(" ")),
    (error: Error) => error.name === "UsageError" && message.test(error.message),
    line,
  );

describe("npm run simulate", () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [path.join(import.meta.dirname, "main.ts"), ...args], {
      encoding: "utf8",
      timeout: 120_000,
    });

  it("reads its options and refuses wrong ones, naming the option and the rule", () => {
    const defaults = { seeds: 100, from: 1, ranges: "stated", history: 60, keepGoing: false, tally: false };
    assert.deepEqual(simulateOptions([]), defaults);
    const { seeds, from, keepGoing } = simulateOptions("--seeds 5 --from 0 --keep-going".split(" "));
    assert.deepEqual([seeds, from, keepGoing], [5, 0, true]);
    refused("--seeds 0", /--seeds.*'0'.*whole number from 1/);
    refused("--seeds many", /--seeds.*whole number/);
    refused("--from -1", /--from.*whole number from 0/);
    refused("--from 1e9", /--from.*whole number/);
    refused("--sedes 5", /unknown option '--sedes'/);
    refused("--ranges calm", /--ranges.*'calm'.*stated, at-the-deadline/);
    refused("5", /too many arguments/);
  });

  it("ends with 2 for options that cannot work, and with 0 for help that names the command", () => {
    const wrong = run("--seeds", "0");
    assert.deepEqual([wrong.status, wrong.stdout], [2, ""]);
    assert.match(wrong.stderr, /--seeds.*whole number/);
    const help = run("--help");
    assert.deepEqual([help.status, help.stderr], [0, ""]);
    assert.match(help.stdout, /^Usage: npm run simulate -- \[options\]/);
  });

  it("runs the seeds that were asked for", () => {
    const { status, stdout, stderr } = run("--seeds", "2", "--from", "7");
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, /^0 of 2 seeds failed; [\d,]+ events in \d+\.\d\d simulated hours/m);
  });
});

describe("the progress of a long run", () => {
  const told = (isTTY: boolean) => {
    const written: string[] = [];
    const time = { ms: 0 };
    const output = { isTTY, write: (text: string) => written.push(text) };
    return { written, time, progress: new Progress(output, () => time.ms) };
  };

  it("is a line every ten seconds in a pipe, without control characters", () => {
    const { written, time, progress } = told(false);
    for (let seed = 1; seed <= 100; seed++) {
      time.ms += 250;
      progress.tell(seed, 100, 1);
    }
    progress.clear();
    assert.deepEqual(written, [
      "40 of 100 seeds, 1 failed, about 15 s left\n",
      "80 of 100 seeds, 1 failed, about 5 s left\n",
    ]);
  });

  it("is one line in place on a terminal, and taken away in the end", () => {
    const { written, time, progress } = told(true);
    time.ms = 250;
    progress.tell(1, 2, 0);
    time.ms = 260;
    progress.tell(2, 2, 0);
    progress.clear();
    progress.clear();
    assert.deepEqual(written, ["\r\x1b[K1 of 2 seeds, 0 failed, about 1 s left", "\r\x1b[K"]);
  });
});
