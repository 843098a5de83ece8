import type { ConnectionItem } from "../../shared/connection/item.ts";
import { CURSOR_PLACEHOLDER } from "../../shared/connection/upstream-settings.ts";

/** Where a stream goes on: what was received last, or nothing yet. */
export interface ResumePoint {
  readonly lastSeq: bigint | undefined;
  readonly lastCursor: string | undefined;
}

/**
 * The URL to dial, with the resume position filled in. Before there is any, the configured initial value stands in;
 * without that, a query parameter that is nothing but the placeholder is left out.
 */
export function targetUrl(item: Pick<ConnectionItem, "wsUrl" | "upstream" | "kind">, resume: ResumePoint): string {
  if (!item.wsUrl.includes(CURSOR_PLACEHOLDER)) return item.wsUrl;
  const cursor = item.kind === "positioned" ? resume.lastSeq?.toString() : resume.lastCursor;
  const value = cursor ?? item.upstream.position?.initial;
  if (value !== undefined) return item.wsUrl.replaceAll(CURSOR_PLACEHOLDER, encodeURIComponent(value));
  return withoutCursorParameters(item.wsUrl).replaceAll(CURSOR_PLACEHOLDER, "");
}

/** Host and port of an item's URL; the placeholder stands in its path or query alone. */
export function hostOf(wsUrl: string): string {
  return new URL(wsUrl.replaceAll(CURSOR_PLACEHOLDER, "0")).host;
}

function withoutCursorParameters(wsUrl: string): string {
  // Only the first question mark begins the query; further ones belong to it.
  const at = wsUrl.indexOf("?");
  if (at < 0) return wsUrl;
  const parameters = wsUrl.slice(at + 1).split("&");
  const kept = parameters.filter((parameter) => !parameter.endsWith(`=${CURSOR_PLACEHOLDER}`));
  return kept.length === 0 ? wsUrl.slice(0, at) : `${wsUrl.slice(0, at)}?${kept.join("&")}`;
}
