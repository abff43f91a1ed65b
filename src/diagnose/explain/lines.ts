import { depth, type Match, type Recognition, recogniseLevel } from "./recognise.ts";

/** The longest events need a dozen lines on a terminal of 80 columns; more is not one record. */
const MAX_LINES = 40;
const MAX_CHARS = 16_384;

/**
 * How a record starts: klog, an ISO date, syslog in any language, logfmt, logrus on a terminal, JSON, dmesg, a kernel
 * stack, an event of kubectl.
 */
const RECORD_START =
  /^(?:[>|*\s]{0,4})(?:\S{0,60}?[IWEF]\d{4} \d\d:\d\d:\d\d|\[?\d{4}[-/]\d\d[-/]\d\d[T ]|\S{1,10} {1,2}\d{1,2} \d\d:\d\d:\d\d |(?:time|ts|level|t)=|[A-Z]{4}\[|(?:\S{1,80}: )?\{ ?"|\[ {0,8}\d{1,8}\.\d{1,9}\]|\[<0>\]|(?:\S{1,60}\s{1,20}){0,3}(?:Warning|Normal)\s{1,20}\S|-[rwx-]{9}\S? )/;

/** Reads physical lines and returns the matches of each log record. Records may span several lines. */
export function recordReader() {
  let pending: string[] = [];
  let size = 0;

  function flush(): readonly (readonly Match[])[] {
    const lines = pending;
    pending = [];
    size = 0;
    return explainRecord(lines);
  }

  function push(line: string): readonly (readonly Match[])[] {
    const blank = line.trim() === "";
    const full = pending.length >= MAX_LINES || size + line.length > MAX_CHARS;
    const done = blank || full || startsRecord(line) ? flush() : [];
    if (blank) return done;
    pending.push(line);
    size += line.length;
    return done;
  }

  return { push, end: flush };
}

/** All matches of a text, record by record. */
export function explainText(text: string): readonly (readonly Match[])[] {
  const reader = recordReader();
  const found = text.split(/\r?\n/).flatMap((line) => reader.push(line));
  return [...found, ...reader.end()];
}

function explainRecord(lines: readonly string[]): readonly (readonly Match[])[] {
  const [first] = lines;
  if (first === undefined) return [];
  if (lines.length === 1) return present([recogniseLevel(first)]);
  const alone = lines.map((line) => recogniseLevel(line));
  const joined = bestJoin(lines);
  if (joined.level === undefined || areSeveral(lines, alone, joined)) return present(alone);
  return present([joined]);
}

/**
 * Whether lines without a record start are separate messages instead of one wrapped message: few lines of a wrapped
 * message match on their own, and then one matches the wrapper and another the cause.
 */
function areSeveral(lines: readonly string[], alone: readonly Recognition[], joined: Recognition): boolean {
  if (startsRecord(lines[0] ?? "") && isWrapped(lines)) return false;
  const matched = alone.filter((one) => one.level !== undefined);
  if (matched.some((one) => one.level !== joined.level)) return false;
  return matched.length > 1 && matched.length * 2 >= lines.length;
}

/** Each line ends where the next word would not have fitted. A word wider than the terminal has its own line. */
function isWrapped(lines: readonly string[]): boolean {
  const width = Math.max(0, ...lines.filter((line) => line.trim().includes(" ")).map((line) => line.length));
  return lines.every((line, index) => {
    const next = lines[index + 1]?.trimStart();
    if (next === undefined) return true;
    const space = next.indexOf(" ");
    return line.length + 2 + (space === -1 ? next.length : space) >= width;
  });
}

function startsRecord(line: string): boolean {
  return RECORD_START.test(line.slice(0, 200));
}

function present(found: readonly Recognition[]): readonly (readonly Match[])[] {
  return found.map((one) => one.matches).filter((matches) => matches.length > 0);
}

/** A wrap may be inside a word or at a space that was lost in the paste: the join with the most specific match wins. */
function bestJoin(lines: readonly string[]): Recognition {
  let best: Recognition = { level: undefined, matches: [] };
  for (const text of [joinByWidth(lines), joinWith(lines, " "), joinWith(lines, "")]) {
    const one = recogniseLevel(text);
    if (depth(one.level) > depth(best.level)) best = one;
  }
  return best;
}

function joinWith(lines: readonly string[], glue: string): string {
  return lines.map((line) => line.trim()).join(glue);
}

/** Lines of the maximum length were cut at the terminal's edge; shorter ones ended at a space. */
function joinByWidth(lines: readonly string[]): string {
  const width = Math.max(...lines.map((line) => line.length));
  let text = "";
  for (const line of lines) text += line.length === width ? line : `${line} `;
  return text.trimEnd();
}
