/** Shortest segment that a sentence's end may close, in UTF-16 units. */
export const MIN_SEGMENT_CHARS = 40;
/** Longest segment; only a single longer word may exceed it. */
export const MAX_SEGMENT_CHARS = 160;

const SENTENCE_END = /[.!?]["'”’)\]]*$/u;
const CLAUSE_END = /[,;:]["'”’)\]]*$/u;

/**
 * Cuts a speech into transcript segments of whole words: a sentence where it fits, else a clause, else as much as fits.
 *
 * Joined by single spaces the segments give the whole text again (white space normalised). Only the last one of a
 * speech may be shorter than {@link MIN_SEGMENT_CHARS}.
 */
export function cutSegments(text: string): string[] {
  const segments: string[] = [];
  let words: string[] = [];
  let chars = 0;

  const cut = (count: number): void => {
    segments.push(words.slice(0, count).join(" "));
    words = words.slice(count);
    chars = joinedLength(words);
  };

  for (const word of text.split(/\s+/u)) {
    if (word === "") continue;
    while (words.length > 0 && chars + 1 + word.length > MAX_SEGMENT_CHARS) cut(lastClause(words));
    words.push(word);
    chars = words.length === 1 ? word.length : chars + 1 + word.length;
    if (chars >= MIN_SEGMENT_CHARS && SENTENCE_END.test(word)) cut(words.length);
  }
  if (words.length > 0) cut(words.length);
  return segments;
}

/** How many words to take so that the segment ends with a clause and is not too short; all of them if none does. */
function lastClause(words: readonly string[]): number {
  let chars = -1;
  let best = words.length;
  words.forEach((word, at) => {
    chars += 1 + word.length;
    if (chars >= MIN_SEGMENT_CHARS && CLAUSE_END.test(word)) best = at + 1;
  });
  return best;
}

function joinedLength(words: readonly string[]): number {
  return words.reduce((sum, word) => sum + word.length, Math.max(0, words.length - 1));
}
