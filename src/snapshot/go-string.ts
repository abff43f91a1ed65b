const SIMPLE: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  '"': '"',
};

const ESCAPE = /\\(?:([abfnrtv\\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))/g;

/** A string in Go's %q format at this position; undefined if there is none or it is not closed. */
export function readGoString(line: string, at: number): { readonly text: string; readonly end: number } | undefined {
  if (line[at] !== '"') return undefined;
  // Not a regular expression: one that matches escapes needs a stack as deep as the line is long.
  for (let index = at + 1; index < line.length; index += 1) {
    if (line[index] === "\\") index += 1;
    else if (line[index] === '"') return { text: unescape(line.slice(at + 1, index)), end: index + 1 };
  }
  return undefined;
}

/** The text of exactly one quoted string. */
export function unquoteGo(quoted: string): string | undefined {
  const read = readGoString(quoted, 0);
  return read?.end === quoted.length ? read.text : undefined;
}

function unescape(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(ESCAPE, (_, simple?: string, x?: string, u?: string, long?: string, octal?: string) => {
    if (simple !== undefined) return SIMPLE[simple] ?? "";
    const code = octal === undefined ? Number.parseInt(x ?? u ?? long ?? "", 16) : Number.parseInt(octal, 8);
    return code <= 0x10ffff ? String.fromCodePoint(code) : "\uFFFD";
  });
}
