/** Words and figures that all views and reports share. */

/** `1 gap`, `2 gaps`, `1,200 gaps`; the plural is given where it is not the singular with an s. */
export function count(value: number, one: string, many = `${one}s`): string {
  return `${whole(value)} ${value === 1 ? one : many}`;
}

export function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** Three digits, which is more than a measurement on a shared machine is worth. */
export function figure(value: number): string {
  return value >= 100 ? whole(value) : Number(value.toPrecision(3)).toString();
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Breaks at spaces; a word that is longer than the width stays whole. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** The parts with commas between them, broken at these where that is possible. */
export function wrapParts(parts: readonly string[], width: number): string[] {
  const whole = parts.map((part) => (part.length < width ? part.replaceAll(" ", "\u00a0") : part));
  return wrap(whole.join(", "), width).map((line) => line.replaceAll("\u00a0", " "));
}

/** With an ellipsis in place of what does not fit. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}
