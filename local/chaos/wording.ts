import { whole } from "../view/wording.ts";
import type { Deed, Place, PlannedFault } from "./plan.ts";
import type { NetworkEffect } from "./proxy/effect.ts";

/** The kind as reports count it. */
export function kindOf(deed: Deed): string {
  switch (deed.does) {
    case "process":
      return deed.kind;
    case "network":
      return deed.effect.kind === "black-hole" && deed.effect.direction !== "both" ? "half-open" : deed.effect.kind;
    case "restart":
      return "upstream restart";
    case "stall":
      return "upstream stall";
  }
}

/** One fault in words, without its number and time. @param slot of the worker that it hits, where it hits one */
export function described(fault: PlannedFault, slot: number | undefined): string {
  const forText = fault.forMs === 0 ? "" : `, for ${(fault.forMs / 1000).toFixed(1)} s`;
  return `${what(fault, slot === undefined ? "no worker" : `worker ${slot + 1}`)}${forText}`;
}

function what(deed: Deed, worker: string): string {
  switch (deed.does) {
    case "process":
      return `${deed.kind}: ${worker}`;
    case "network":
      return `${effectText(deed.effect)}: ${placeText(deed.place, worker)}`;
    case "restart":
      return `upstream restart, ${deed.graceful ? "with close frames" : "without a word"}`;
    case "stall":
      return "upstream stall";
  }
}

function effectText(effect: NetworkEffect): string {
  switch (effect.kind) {
    case "latency":
      return `latency of ${whole(effect.latencyMs)} to ${whole(effect.latencyMs + effect.jitterMs)} ms`;
    case "slow":
      return `slow, ${whole(effect.bytesPerSecond)} bytes/s`;
    case "black-hole":
      return { both: "black hole", out: "half-open, nothing gets out", in: "half-open, nothing comes in" }[
        effect.direction
      ];
    case "reset":
      return `reset every ${whole(effect.everyMs)} ms`;
    case "cut":
      return "cut";
  }
}

function placeText(place: Place, worker: string): string {
  switch (place.at) {
    case "upstream":
      return place.share === 1 ? "all workers ↔ upstream" : `${whole(place.share * 100)} % of connections ↔ upstream`;
    case "dynamodb":
      return `${worker} ↔ DynamoDB`;
    case "sqs":
      return `${worker} ↔ SQS`;
    case "functions":
      return "functions ↔ DynamoDB, SQS";
  }
}
