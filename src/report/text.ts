import { styleText } from "node:util";

/** Colour or none, decided once by whoever knows the terminal. */
export interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  yellow(text: string): string;
  green(text: string): string;
}

export function paint(colour: boolean): Paint {
  const style = (format: Parameters<typeof styleText>[0]) => (text: string) =>
    colour ? styleText(format, text, { validateStream: false }) : text;
  return { bold: style("bold"), dim: style("dim"), red: style("red"), yellow: style("yellow"), green: style("green") };
}

/** Breaks text at spaces so that no line is longer than the terminal; every line after the first is indented. */
export function wrap(text: string, columns: number, indent = ""): string {
  const width = Math.max(24, columns);
  const lines: string[] = [];
  const words = text.trimStart().split(" ");
  let line = " ".repeat(text.length - text.trimStart().length) + (words.shift() ?? "");
  for (const word of words) {
    const room = width - (lines.length === 0 ? 0 : indent.length);
    if (line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else {
      line = `${line} ${word}`;
    }
  }
  lines.push(line);
  return lines.map((part, index) => (index === 0 ? part : indent + part)).join("\n");
}

export function count(number: number, singular: string, plural = `${singular}s`): string {
  return `${number} ${number === 1 ? singular : plural}`;
}

/** Control characters in names and messages of others must not reach a terminal. */
export function printable(text: string): string {
  // biome and oxlint agree that a control range is meant here: it is the point of the function.
  return text.replace(/[\p{Cc}\p{Cf}]/gu, "\uFFFD");
}
