import { performance } from "node:perf_hooks";

/** What the tests use of node:test, by Mocha's functions of the same name. A test that uses more fails to load. */
type Body = () => unknown;
type Registered = (name: string, ...rest: [Body] | [options: object, Body]) => void;
type Hook = (body: Body) => void;

interface Mocha {
  describe(name: string, body: Body): void;
  it(name: string, body: Body): void;
  before: Hook;
  after: Hook;
  beforeEach: Hook;
  afterEach: Hook;
}

const mocha = globalThis as unknown as Mocha;

/** Limits of time are left out: a test that hangs is seen sooner. */
export const describe: Registered = (name, ...rest) => mocha.describe(name, () => bodyOf(rest)());
export const it: Registered = (name, ...rest) => mocha.it(name, unlessIdle(bodyOf(rest)));
export const before: Hook = (body) => mocha.before(unlessIdle(body));
export const after: Hook = (body) => mocha.after(unlessIdle(body));
export const beforeEach: Hook = (body) => mocha.beforeEach(unlessIdle(body));
export const afterEach: Hook = (body) => mocha.afterEach(unlessIdle(body));

function bodyOf(rest: [Body] | [object, Body]): Body {
  const body = rest.length === 1 ? rest[0] : rest[1];
  if (body.length > 0) throw new Error("a test that is run for mutations must not use node:test's context");
  return body;
}

const LOOK_MS = 200;

/**
 * Fails a body that waits for what never comes, as node:test does when nothing is left to run. In virtual time nothing
 * is really waited for, so an event loop that idles is enough of a proof, and much sooner there than a limit of time.
 */
function unlessIdle(body: Body): () => Promise<void> {
  return async () => {
    let timer: NodeJS.Timeout | undefined;
    const idle = new Promise((_resolve, reject) => {
      let since = performance.eventLoopUtilization();
      timer = setInterval(() => {
        const { utilization } = performance.eventLoopUtilization(since);
        since = performance.eventLoopUtilization();
        if (utilization < 0.05) reject(new Error("waits for something that never comes"));
      }, LOOK_MS);
    });
    try {
      await Promise.race([body(), idle]);
    } finally {
      clearInterval(timer);
    }
  };
}
