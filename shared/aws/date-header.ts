import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";

/** One answer's idea of the time, between two readings of our anchored clock. */
export interface DateObservation {
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
  /** The Date header: whole seconds, so the server's clock was in [dateMs, dateMs + 1000). */
  readonly dateMs: number;
}

/** Reports the Date header of every answer of `client`, per attempt. */
export function observeDates(client: DynamoDBClient, nowMs: () => number, seen: (date: DateObservation) => void): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const sentAtMs = nowMs();
      const result = await next(args);
      const headers = (result.response as { headers?: Record<string, string> } | undefined)?.headers;
      const dateMs = Date.parse(headers?.["date"] ?? "");
      if (!Number.isNaN(dateMs)) seen({ sentAtMs, receivedAtMs: nowMs(), dateMs });
      return result;
    },
    { step: "deserialize", name: "wsFleetDates", priority: "low" },
  );
}
