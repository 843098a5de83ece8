import type { z } from "zod";

/**
 * Checks one part of serverless.yml against its schema.
 * @throws {Error} naming every field that is wrong, and the rule.
 */
export function parsePart<T>(schema: z.ZodType<T>, value: unknown, at: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${[at, ...issue.path.map(String)].join(".")}: ${issue.message}`);
  throw new Error(`serverless.yml: ${problems.join("; ")}`);
}
