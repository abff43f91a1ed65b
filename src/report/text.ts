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
