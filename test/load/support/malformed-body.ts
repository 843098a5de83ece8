/** What somebody might put into the queue by mistake; each is another text. */
export const malformedBody = (n: number): string => {
  const kinds = [`not JSON ${n}`, `{"v":2,"n":${n}}`, `{"v":1,"connection_id":"a#${n}"}`, `[${n}]`, `"${n}"`];
  return kinds[n % kinds.length] ?? "";
};
