const ESCAPE = "\u001b[";

/** What begins each style, and what ends it. node:util knows them too, but takes milliseconds of a scan to load. */
const STYLES = { bold: [1, 22], dim: [2, 22], red: [31, 39], yellow: [33, 39], green: [32, 39] } as const;

/** The output's options: what the terminal supports, and the verbosity. */
export interface TextOptions {
  readonly colour: boolean;
  readonly columns: number;
  readonly verbose: boolean;
}

/** Colour or none, decided once by the caller. */
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

/** Narrower than this nothing can be laid out; the terminal then breaks lines as it likes. */
const LEAST_COLUMNS = 24;

/**
 * Breaks text at spaces so that no line is longer than the terminal; every line after the first is indented. A word
 * longer than that stays whole: names and paths are there to be copied.
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
      // Of two spaces in a row the second ends up in front of a line that is broken there.
      line = line === indent ? line + word : `${line} ${word}`;
    }
  }
  return [...lines, line].join("\n");
}

/** Side by side where they fit, three spaces apart. A line that is too long breaks in front of its command. */
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
  // A command is written as it is typed.
  const isCommand = /^(?:unghost|kubectl|crictl|systemctl|journalctl)\b/.test(text);
  return fullStop(isCommand ? text : text.charAt(0).toUpperCase() + text.slice(1));
}

export function fullStop(text: string): string {
  return /[.!?:]$/.test(text) ? text : `${text}.`;
}

export function count(number: number, singular: string, plural = `${singular}s`): string {
  return `${number} ${number === 1 ? singular : plural}`;
}
