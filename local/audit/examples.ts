const LIMIT = 5;

/** Keeps the first few findings of a comparison, so that a broken run can be understood without drowning in it. */
export class Examples {
  readonly list: string[] = [];
  readonly #about: string;

  constructor(about: string) {
    this.#about = about;
  }

  add(finding: string): void {
    if (this.list.length < LIMIT) this.list.push(`${this.#about}: ${finding}`);
  }
}
