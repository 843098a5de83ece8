import { FIRST_DEAD_NAME, FREE, NOBODY, type Item, type Request, type State } from "./state.ts";

/** States and requests in words, for the history of a violation. Times are ticks from now. */

export function nameOf(owner: number): string {
  if (owner === NOBODY) return "nobody";
  return owner < FIRST_DEAD_NAME ? `worker ${"AB"[owner] ?? "?"}` : `dead task ${owner - FIRST_DEAD_NAME + 1}`;
}

export function said({ kind, epoch, expires, seq }: Request): string {
  const of = epoch === 0 ? "" : ` of epoch ${epoch}`;
  const until = expires === FREE ? "" : ` until ${ticks(expires)}`;
  return `${kind}${of}${until}${seq === 0 ? "" : ` with last_seq ${seq}`}`;
}

export function stateText({ item, workers, late }: State): string {
  const holdings = workers.map(({ hold, op }, side) => {
    const waits = op === undefined ? "" : `, waits for ${op.request.kind}`;
    if (hold === undefined) return `${nameOf(side)}: nothing${waits}`;
    return `${nameOf(side)}: ${hold.state} under epoch ${hold.epoch}, deadline in ${hold.deadline}${waits}`;
  });
  return [itemText(item), ...holdings, ...(late.length === 0 ? [] : [`${late.length} late`])].join("; ");
}

function itemText(item: Item | undefined): string {
  if (item === undefined) return "no item";
  const expires = item.expires === FREE ? "free" : `ends at ${ticks(item.expires)}`;
  const seq = item.seq === 0 ? "" : `, last_seq ${item.seq}`;
  return `${item.started ? "STARTED" : "STOPPED"}, ${nameOf(item.owner)}, epoch ${item.epoch}, ${expires}${seq}`;
}

/** An odd half tick is a whole one and a millisecond. */
function ticks(time: number): string {
  return `${time >> 1}${(time & 1) === 1 ? " + 1 ms" : ""}`;
}
