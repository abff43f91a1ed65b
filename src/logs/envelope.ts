import { parseJson } from "../host/text.ts";

/**
 * One log line, split into its fields. Text that another party chose (a hook's output, a registry's answer) can only be
 * inside one of these values, never beside them: a line that is not well-formed from start to end has no envelope.
 */
export interface LogEnvelope {
  readonly format: "logrus" | "klog";
  readonly level: "error" | "warning" | "info" | "other";
  readonly message: string;
  /** The error field; absent if there is none. */
  readonly error?: string;
  readonly fields: ReadonlyMap<string, string>;
}

export function parseEnvelope(line: string): LogEnvelope | undefined {
  // Every writer escapes line breaks inside its values.
  if (line.includes("\n")) return undefined;
  if (line.startsWith("{")) return parseJsonLine(line);
  if (line.startsWith('time="')) return parseLogrus(line);
  return parseKlog(line);
}

interface Fields {
  readonly values: ReadonlyMap<string, string>;
  /** The end of the well-formed fields. */
  readonly end: number;
}

const KEY = /([A-Za-z_][\w./-]{0,79})=/y;
/** The characters that logrus does not quote: anything else, like a space or a quote, forces quotes. */
const BARE = /[A-Za-z0-9\-._/@^+]{0,4096}(?= |$)/y;

/** `key=value key="quoted"` from `start` on. Ends at the first text that is not such a field. */
function readFields(line: string, start: number): Fields | undefined {
  const values = new Map<string, string>();
  let end = start;
  for (let at = start; at < line.length; ) {
    KEY.lastIndex = at;
    const key = KEY.exec(line)?.[1];
    if (key === undefined) break;
    const value = readValue(line, at + key.length + 1);
    if (value === undefined) break;
    // No writer repeats a key: one of the two is forged.
    if (values.has(key)) return undefined;
    values.set(key, value.text);
    end = value.end;
    if (line[end] !== " ") break;
    at = end + 1;
  }
  return { values, end };
}

function readValue(line: string, at: number): { readonly text: string; readonly end: number } | undefined {
  if (line[at] === '"') return readGoString(line, at);
  BARE.lastIndex = at;
  const bare = BARE.exec(line)?.[0];
  return bare === undefined ? undefined : { text: bare, end: at + bare.length };
}

/** containerd, CRI-O and cri-dockerd: `time="…" level=error msg="…" error="…" key=value`, without other text. */
function parseLogrus(line: string): LogEnvelope | undefined {
  const read = readFields(line, 0);
  if (read === undefined || read.end !== line.length) return undefined;
  const [first, second] = read.values.keys();
  const message = read.values.get("msg");
  if (first !== "time" || second !== "level" || message === undefined) return undefined;
  return logrusOf(read.values, message);
}

function logrusOf(values: ReadonlyMap<string, string>, message: string): LogEnvelope {
  const error = values.get("error");
  const level = levelOf(values.get("level"));
  return { format: "logrus", level, message, error, fields: values };
}

function levelOf(level: string | undefined): LogEnvelope["level"] {
  if (level === "error" || level === "warning" || level === "info") return level;
  return "other";
}

const KLOG_HEADER = /^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d{1,10} [\w.-]{1,100}\.go:\d{1,6}\] /;
const KLOG_LEVELS = { I: "info", W: "warning", E: "error", F: "other" } as const;

/**
 * kubelet: `E1116 03:22:07.101010 811 log.go:32] "message" err="…" key="value"`. klog writes the error first, and
 * values that are neither text nor error unquoted, as Go prints them: whatever follows such a value may be part of it.
 */
function parseKlog(line: string): LogEnvelope | undefined {
  const header = KLOG_HEADER.exec(line);
  if (header === null) return undefined;
  const start = header[0].length;
  if (line[start] !== '"') return undefined;
  const message = readGoString(line, start);
  if (message === undefined) return undefined;
  const { end, text } = message;
  if (end !== line.length && line[end] !== " ") return undefined;
  const read = readFields(line, end + 1);
  if (read === undefined) return undefined;
  const [first] = read.values.keys();
  const error = first === "err" ? read.values.get("err") : undefined;
  const level = KLOG_LEVELS[header[1] as keyof typeof KLOG_LEVELS];
  return { format: "klog", level, message: text, error, fields: read.values };
}

/**
 * Both can be configured to write JSON: containerd `{"level":…,"msg":…,"time":…}`, kubelet
 * `{"ts":…,"caller":…,"msg":…}`.
 */
function parseJsonLine(line: string): LogEnvelope | undefined {
  const values = textValuesOf(line);
  const message = values?.get("msg");
  if (values === undefined || message === undefined) return undefined;
  if (values.has("time") && values.has("level")) return logrusOf(values, message);
  if (!values.has("caller")) return undefined;
  const error = values.get("err");
  const level = error === undefined ? "info" : "error";
  return { format: "klog", level, message, error, fields: values };
}

function textValuesOf(line: string): ReadonlyMap<string, string> | undefined {
  const parsed = parseJson(line);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return undefined;
  const entries = Object.entries(parsed).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return new Map(entries);
}

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
