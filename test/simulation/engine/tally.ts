/** How often what happened: a run in which nothing was lost or fenced has shown nothing. */
export class Tally {
  readonly counts = new Map<string, number>();

  add(what: string, n = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + n);
  }

  addAll(other: Tally): void {
    for (const [what, n] of other.counts) this.add(what, n);
  }
}
