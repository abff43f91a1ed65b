/**
 * Normalises a line for the signatures: lower case, no colours, no quotes, no backslashes, single spaces. No signature
 * needs quotes, and every envelope (klog, logfmt, JSON, an event, a shell that removed them) escapes them differently;
 * without them all envelopes are alike.
 */
export function normalise(line: string): string {
  return stripQuotes(readable(line)).toLowerCase().trim().replace(/\s+/g, " ");
}

/** The text for people: escapes and entities decoded, colours removed, quotes kept. */
export function readable(line: string): string {
  return decodeEscapes(stripColours(line)).replace(/\s+/g, " ").trim();
}

/** Terminal escapes, also in the notation of syslog (#033) and cat -v (^[); syslog's tabs and line breaks. */
function stripColours(line: string): string {
  return line.replace(/(?:\p{Cc}|\^\[|#033)\[[0-9;]{0,32}[A-Za-z]/gu, "").replace(/#01[12]/g, " ");
}

/**
 * Backslash escapes at any depth, and the HTML entities of pasted web pages. A run of backslashes is matched as a
 * whole, so a megabyte of them is read once.
 */
function decodeEscapes(line: string): string {
  const plain = line.includes("&")
    ? line.replace(/&(quot|#34|#39|apos|lt|gt|amp|nbsp);/g, (_, name: string) => ENTITIES.get(name) ?? '"')
    : line;
  if (!plain.includes("\\")) return plain;
  return plain.replace(/\\+(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrt])?/g, (_, escape: string | undefined) => {
    if (escape === undefined) return "";
    if (escape.length === 1) return " ";
    return String.fromCharCode(Number.parseInt(escape.slice(1), 16));
  });
}

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ["lt", "<"],
  ["gt", ">"],
  ["amp", "&"],
  ["nbsp", " "],
]);

/** Straight, typographic and back quotes, and the asterisks of Markdown's bold. */
function stripQuotes(line: string): string {
  return line.replace(/["'`\u2018\u2019\u201c\u201d\u00ab\u00bb]|(?<!\*)\*\*(?!\*)/g, "");
}

/** The end of a line that a pager, an event's limit or a table's column has cut off. */
const CUT_END = /(?:…|\.\.\.|(?<![-=\s])>|[^\s"'>]│|\[truncated\]|\(truncated\)|‹)\s*$/;
/** A placeholder or Go's nil at the end of a line, and klog's sign of a folded value. */
const WHOLE_END = /<[^<>\s]{0,60}>\s*$|^\s*>\s*$/;
/** A quoted field that is never closed. */
const OPEN_FIELD = /(?:^|[\s{,])"?(?:err|error|msg)"?[=:]\s?"(?:[^"\\]|\\.)*$/;
const FIELD_SEARCHED = 8_192;

export function isCut(line: string): boolean {
  const end = line.slice(-200);
  if (CUT_END.test(end) && !WHOLE_END.test(end)) return true;
  return line.length < FIELD_SEARCHED && OPEN_FIELD.test(line.trimEnd());
}

/** Go's verbs and calls, and the placeholders and keys of alert rules: somebody wrote these words for errors that did not happen. */
const TEMPLATE =
  /\b(?:fmt|errors|log|klog|logrus)\.[A-Z]\w{1,20}\(|\blog\.G\(|%[qwv](?![0-9A-Za-z%])|\{\{\s{0,4}\$|^\s{0,20}-? ?alert: [^]{0,400}?\bexpr: /;

export function isTemplate(text: string): boolean {
  return TEMPLATE.test(text.slice(0, FIELD_SEARCHED));
}
