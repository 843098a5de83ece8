import type { LeaseTable } from "../../../shared/lease/index.ts";

export interface Answering {
  readonly table: LeaseTable;
  /** What was sent, in order. */
  readonly inputs: Record<string, unknown>[];
}

/** A table whose answers are made by the test; an error is thrown. */
export function answering(answer: (input: Record<string, unknown>) => object): Answering {
  const inputs: Record<string, unknown>[] = [];
  const send = ({ input }: { input: Record<string, unknown> }): Promise<object> => {
    inputs.push(input);
    const made = answer(input);
    return made instanceof Error ? Promise.reject(made) : Promise.resolve(made);
  };
  return { table: { tableName: "connections", client: { send } as unknown as LeaseTable["client"] }, inputs };
}
