/** A longer line is cut: what a log reports about a sandbox is within the first megabyte. */
const MAX_LINE = 1024 * 1024;

/** Lines of a byte stream, with a flat amount of memory whatever comes. */
export async function* splitLines(chunks: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    rest += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    let start = 0;
    for (let end = rest.indexOf("\n"); end !== -1; end = rest.indexOf("\n", start)) {
      yield rest.slice(start, rest[end - 1] === "\r" ? end - 1 : end);
      start = end + 1;
    }
    rest = rest.slice(start);
    if (rest.length > MAX_LINE) {
      yield rest;
      rest = "";
    }
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}
