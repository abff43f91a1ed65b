/**
 * One line as the signatures expect it: lower case, no colours, no quotes, no backslashes, one space for any white
 * space. Quotes carry nothing that a signature needs, and every envelope (klog, logfmt, JSON, an event, a shell that
 * ate them) escapes them differently; without them all envelopes read alike.
 */
export function normalise(line: string): string {
  return stripQuotes(decodeEscapes(stripColours(line)))
    .toLowerCase()
    .replace(/\s+/g, " ")
    .trim();
}

/** Terminal escapes, also as syslog (#033) and cat -v (^[) print them. */
function stripColours(line: string): string {
  return line.replace(/(?:\p{Cc}|\^\[|#033)\[[0-9;]{0,32}[A-Za-z]/gu, "");
}

/**
 * Backslash escapes at any depth, and the few HTML entities that web pages leave in a paste. A run of backslashes is
 * taken whole: it always matches, so a megabyte of them is read once.
 */
function decodeEscapes(line: string): string {
  const plain = line.includes("&") ? line.replace(/&(quot|#34|#39|apos|lt|gt|amp|nbsp);/g, decodeEntity) : line;
  if (!plain.includes("\\")) return plain;
  return plain.replace(/\\+(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrt])?/g, (_, escape: string | undefined) => {
    if (escape === undefined) return "";
    if (escape.length === 1) return " ";
    return String.fromCharCode(Number.parseInt(escape.slice(1), 16));
  });
}

function decodeEntity(_: string, name: string): string {
  if (name === "lt") return "<";
  if (name === "gt") return ">";
  if (name === "amp") return "&";
  if (name === "nbsp") return " ";
  return "";
}

/** Straight, typographic and back quotes, and the asterisks of Markdown's bold. */
function stripQuotes(line: string): string {
  return line.replace(/["'`\u2018\u2019\u201c\u201d\u00ab\u00bb]|\*\*/g, "");
}
