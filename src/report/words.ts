import type { NodeReport, ReportedFinding } from "./node-report.ts";

const ESCAPE = "\u001b[";

/** The escape codes that start and end each style. node:util has them too, but takes milliseconds to load. */
const STYLES = { bold: [1, 22], dim: [2, 22], red: [31, 39], yellow: [33, 39], green: [32, 39] } as const;

/** The output's options: what the terminal supports, and the verbosity. */
export interface TextOptions {
  readonly colour: boolean;
  readonly columns: number;
  readonly verbose: boolean;
}

/** With or without colour, decided once by the caller. */
export interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  yellow(text: string): string;
  green(text: string): string;
}

export function paint(colour: boolean): Paint {
  const style =
    ([on, off]: (typeof STYLES)[keyof Paint]) =>
    (text: string) =>
      colour ? `${ESCAPE}${on}m${text}${ESCAPE}${off}m` : text;
  const { bold, dim, red, yellow, green } = STYLES;
  return { bold: style(bold), dim: style(dim), red: style(red), yellow: style(yellow), green: style(green) };
}

/** On a narrower terminal nothing is laid out, and the terminal wraps lines. */
const LEAST_COLUMNS = 24;

/**
 * Wraps text at spaces; every line after the first is indented. A longer word is not broken, so that names and paths
 * can be copied.
 */
export function wrap(text: string, columns: number, indent = ""): string {
  const width = Math.max(LEAST_COLUMNS, columns);
  const [first = "", ...words] = text.trimStart().split(" ");
  const lines: string[] = [];
  let line = " ".repeat(text.length - text.trimStart().length) + first;
  for (const word of words) {
    if (visibleLength(line) + 1 + visibleLength(word) > width) {
      lines.push(line.trimEnd());
      line = indent + word;
    } else {
      // Of two consecutive spaces the second is at the start of a wrapped line.
      line = line === indent ? line + word : `${line} ${word}`;
    }
  }
  return [...lines, line].join("\n");
}

/** Ids as short as in every list; scan and heal accept them. */
export function withShortIds(text: string): string {
  return text.replaceAll(/[0-9a-f]{64}/g, (id) => id.slice(0, 13));
}

/** Equal for the same error about different sandboxes: without the ids in it. */
export function withoutIds(text: string): string {
  return text.replaceAll(/[0-9a-f]{8}(?:[0-9a-f]{4,}|(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/g, "…");
}

/** In one line if they fit, three spaces apart. A line that is too long breaks before its command. */
export function inLines(parts: readonly string[], columns: number): readonly string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const joined = `${last}   ${part}`;
    if (last !== undefined && joined.length <= columns) lines[lines.length - 1] = joined;
    else lines.push(part.length > columns ? commandBelow(part, columns) : part);
  }
  return lines;
}

function commandBelow(part: string, columns: number): string {
  const command = part.indexOf(": unghost ") + 1;
  if (command === 0) return wrap(part, columns, "  ");
  return `${wrap(part.slice(0, command), columns, "  ")}\n  ${part.slice(command + 1)}`;
}

export function visibleLength(text: string): number {
  const [plain = "", ...styled] = text.split(ESCAPE);
  return styled.reduce((length, part) => length + part.length - part.indexOf("m") - 1, plain.length);
}

/** A complete sentence. */
export function sentence(text: string): string {
  // A command keeps its case.
  const isCommand = /^(?:unghost|kubectl|crictl|systemctl|journalctl)\b/.test(text);
  return fullStop(isCommand ? text : text.charAt(0).toUpperCase() + text.slice(1));
}

export function fullStop(text: string): string {
  return /[.!?:]$/.test(text) ? text : `${text}.`;
}

export function count(number: number, singular: string, plural = `${singular}s`): string {
  return `${number} ${number === 1 ? singular : plural}`;
}

/**
 * web-2 before web-10: runs of digits compare as numbers. Intl.Collator does the same and takes milliseconds to load.
 */
export function naturalOrder(one: string, other: string): number {
  const left = one.split(/(\d+)/);
  const right = other.split(/(\d+)/);
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const order = compareParts(left[index] ?? "", right[index] ?? "", index % 2 === 1);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

function compareParts(one: string, other: string, areNumbers: boolean): number {
  if (areNumbers) {
    const [left, right] = [one.replace(/^0+/, ""), other.replace(/^0+/, "")];
    if (left.length !== right.length) return left.length - right.length;
    if (left !== right) return left < right ? -1 : 1;
  }
  return one < other ? -1 : one > other ? 1 : 0;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Like kubectl's ages: 42s, 14m, 7h, 3d. A clock that was set back gives 0s, never a negative age. */
export function shortAge(since: string, now: string): string {
  const seconds = Math.max(0, Math.floor((Date.parse(now) - Date.parse(since)) / 1000));
  if (Number.isNaN(seconds)) return "-";
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 2 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  return `${Math.floor(seconds / DAY)}d`;
}

/** `14m`; `>14m` if it may be longer; `-` if nothing on the node shows it. */
export function findingAge(
  { since, sinceSource }: Pick<ReportedFinding, "since" | "sinceSource">,
  now: string,
): string {
  if (since === undefined) return "-";
  return `${sinceSource === "boot" ? ">" : ""}${shortAge(since, now)}`;
}

type AnySubject = Partial<NodeReport["findings"][number]["subject"]> & { readonly type: string };

/** A subject in one line: the pod first, because it is the most familiar name. */
export function subjectInWords(subject: AnySubject): string {
  const pod = subject.pod ? `${subject.pod.namespace}/${subject.pod.name} (attempt ${subject.pod.attempt})` : undefined;
  const id = subject.sandboxId?.slice(0, 13);
  const pid = subject.pid === undefined ? undefined : `pid ${subject.pid}`;
  const words = [pod, id, subject.path, pid].filter((word) => word !== undefined);
  return words.length > 0 ? words.join("  ") : (subject.name ?? subject.type);
}

/** `3 ghosts, 1 leak` */
/** `2 ghosts, 1 leak`. Also for the status page, which carries no more than it needs. */
export function countByKind(findings: readonly Pick<ReportedFinding, "kind">[]): string {
  const of = (kind: ReportedFinding["kind"]) => findings.filter((finding) => (finding.kind ?? "other") === kind).length;
  const words = [
    [of("ghost"), "ghost"],
    [of("leak"), "leak"],
    [of("other"), of("ghost") + of("leak") === 0 ? "finding" : "other finding"],
  ] as const;
  return (
    words
      .flatMap(([number, word]) => (number === 0 ? [] : [`${number} ${word}${number === 1 ? "" : "s"}`]))
      .join(", ") || "no ghosts"
  );
}

/** A command of unghost with the flags and targets of the one that runs, as it can be pasted where the reader is. */
export type CommandLine = (name: string, ...more: readonly string[]) => string;
