/** What any process needs of its surroundings; nothing of AWS is among it. */
const PASSED_ON = ["PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "SystemRoot", "TEMP", "TMP"];
/** How the SDK finds credentials of people; only for a run against an endpoint that is not on this machine. */
const CREDENTIAL_SOURCES = [
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_PROFILE",
  "AWS_CONFIG_FILE",
  "AWS_SHARED_CREDENTIALS_FILE",
  "AWS_ROLE_ARN",
  "AWS_WEB_IDENTITY_TOKEN_FILE",
  "AWS_CONTAINER_CREDENTIALS_FULL_URI",
  "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
  "AWS_CONTAINER_AUTHORIZATION_TOKEN",
  "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
];

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The environment for child processes that serve: nothing but the basics, so that a profile or a region of the user's
 * shell can neither leak to a local server nor change a run.
 */
export function basicEnv(env: Env): Record<string, string> {
  return pick(env, PASSED_ON);
}

/** The credential settings of the user's shell. */
export function userCredentials(env: Env): Record<string, string> {
  return pick(env, CREDENTIAL_SOURCES);
}

function pick(env: Env, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
