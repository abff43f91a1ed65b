import { recordsInJson } from "../../logs/json-list.ts";
import { isTemplate } from "../../logs/text.ts";
import { type Answer, answerTo } from "./answer.ts";
import type { Match } from "./recognise.ts";

/** The longest events need a dozen lines on a terminal of 80 columns; more is not one record. */
const MAX_LINES = 40;
const MAX_CHARS = 16_384;

/**
 * How a record starts: klog, an ISO date, syslog in any language, logfmt, logrus on a terminal, JSON, dmesg, a kernel
 * stack, an event of kubectl.
 */
const RECORD_START =
  /^(?:[>|*\s]{0,4})(?:\S{0,60}?[IWEF]\d{4} \d\d:\d\d:\d\d|\[?\d{4}[-/]\d\d[-/]\d\d[T ]|\S{1,10} {1,2}\d{1,2} \d\d:\d\d:\d\d |(?:time|ts|level|t)=|[A-Z]{4}\[|(?:\S{1,80}: )?\{ ?"|\[ {0,8}\d{1,8}\.\d{1,9}\]|\[<0>\]|(?:\S{1,60}\s{1,20}){0,3}(?:Warning|Normal)\s{1,20}\S|-[rwx-]{9}\S? )/;

/** klog puts a value with line breaks between `err=<` and ` >`, and journald prefixes each of its lines. */
const FOLD_START = /(?:err|error|msg)=<$/;
const FOLD_END = /(?:^|[\s:])>(?:\s|$)/;
const SYSLOG_PREFIX = /^\S{1,10} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,253} [^\s:]{1,80}:\s?/;

/** Reads physical lines and returns the answer to each log record. Records may span several lines. */
export function recordReader() {
  let pending: string[] = [];
  let size = 0;
  let isFolded = false;
  /** Of a message whose end has not come yet. */
  let bytes: string | undefined;

  function flush(): readonly Answer[] {
    const lines = pending;
    pending = [];
    size = 0;
    isFolded = false;
    return answersTo(lines);
  }

  function push(physical: string): readonly Answer[] {
    if (bytes !== undefined || FIRST_OF_BYTES.test(physical)) {
      bytes = `${bytes ?? ""}${physical.trim()}`;
      if (!physical.includes("]") && bytes.length < LONGEST_BYTES) return [];
    }
    const line = withMessage(bytes ?? physical);
    bytes = undefined;
    const listed = recordsInJson(line);
    if (listed !== undefined) return [...flush(), ...present(listed.map((one) => answerTo(one)))];
    const blank = line.trim() === "";
    const full = pending.length >= MAX_LINES || size + line.length > MAX_CHARS;
    if (isFolded && !full) {
      const text = line.replace(SYSLOG_PREFIX, "");
      pending[0] = `${pending[0]} ${text.trim()}`;
      size += line.length;
      if (!FOLD_END.test(text)) return [];
      isFolded = false;
      return [];
    }
    const done = blank || full || startsRecord(line) ? flush() : [];
    if (blank) return done;
    pending.push(line);
    size += line.length;
    isFolded = pending.length === 1 && FOLD_START.test(line.trimEnd());
    return done;
  }

  return { push, end: flush };
}

/** `journalctl -o json` writes a message with colours or other control characters as the numbers of its bytes. */
const BYTES = /"MESSAGE" ?: ?\[\s*(\d{1,3}(?:\s*,\s*\d{1,3}){1,16383})\s*\]/;
/** In `-o json-pretty` each byte has a line of its own. */
const FIRST_OF_BYTES = /"MESSAGE" ?: ?\[\s*$/;
const LONGEST_BYTES = 512 * 1024;

function withMessage(line: string): string {
  if (!line.includes('"MESSAGE"')) return line;
  return line.replace(BYTES, (_, numbers: string) => {
    const message = new TextDecoder().decode(Uint8Array.from(numbers.split(","), Number));
    return `"MESSAGE":${JSON.stringify(message)}`;
  });
}

/** The answers to a text, record by record. Records without an answer are left out. */
export function answersIn(text: string): readonly Answer[] {
  const reader = recordReader();
  const found = text.split(/\r?\n/).flatMap((line) => reader.push(line));
  return [...found, ...reader.end()];
}

/** The classes of a text, record by record. */
export function explainText(text: string): readonly (readonly Match[])[] {
  return answersIn(text).flatMap(({ matches }) => (matches.length > 0 ? [matches] : []));
}

function answersTo(lines: readonly string[]): readonly Answer[] {
  const [first] = lines;
  if (first === undefined || isTemplate(lines.join(" "))) return [];
  if (lines.length === 1) return present([answerTo(first)]);
  const alone = lines.map((line) => answerTo(line));
  const joined = bestJoin(lines.slice(1).every((line) => QUOTE_MARK.test(line)) ? lines.map(withoutQuoteMark) : lines);
  if (joined.weight === 0 || areSeveral(lines, alone, joined)) return present(alone);
  return present([joined]);
}

/** The mark of a quotation or the border of a pane, on each line. */
const QUOTE_MARK = /^\s{0,8}[>|│]\s/;

function withoutQuoteMark(line: string): string {
  return line.replace(QUOTE_MARK, "").replace(/\s{1,400}[|│]\s*$/, "");
}

/**
 * Whether lines without a record start are separate messages instead of one wrapped message: few lines of a wrapped
 * message match on their own, and then one matches the wrapper and another the cause.
 */
function areSeveral(lines: readonly string[], alone: readonly Answer[], joined: Answer): boolean {
  if (startsRecord(lines[0] ?? "") && isWrapped(lines)) return false;
  const matched = alone.filter((one) => one.weight > 0);
  if (matched.some((one) => one.weight !== joined.weight)) return false;
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

function present(found: readonly Answer[]): readonly Answer[] {
  return found.filter(({ weight }) => weight > 0);
}

/** A wrap may be inside a word or at a space that was lost in the paste: the join with the highest weight wins. */
function bestJoin(lines: readonly string[]): Answer {
  let best = answerTo(joinByWidth(lines));
  for (const glue of [" ", ""]) {
    const one = answerTo(joinWith(lines, glue));
    if (one.weight > best.weight || (one.weight === best.weight && confidenceOf(one) > confidenceOf(best))) best = one;
  }
  return best;
}

function confidenceOf({ matches }: Answer): number {
  return Math.max(0, ...matches.map(({ confidence }) => confidence));
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
