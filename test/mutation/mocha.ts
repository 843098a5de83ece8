import { registerHooks } from "node:module";

/**
 * Lets Mocha run the tests that are written for node:test, which can run each test only once per process: Stryker's Mocha
 * runner loads the code with all its mutants once and then runs the tests again and again, a few milliseconds a mutant.
 */
registerHooks({
  resolve: (specifier, context, nextResolve) =>
    specifier === "node:test"
      ? { url: new URL("node-test.ts", import.meta.url).href, format: "module-typescript", shortCircuit: true }
      : nextResolve(specifier, context),
});
