import { type Io, wantsColour } from "../../src/cli/io.ts";
import { paint, wrap } from "../../src/report/words.ts";

/** Prints the demo: headings, sentences, tables, and the output of commands. */
export interface Narrator {
  heading(title: string): void;
  say(text: string): void;
  /** A typed command and its output. */
  command(typed: string, output: string): void;
  table(header: readonly string[], rows: readonly (readonly string[])[]): void;
}

const WIDEST = 110;
const GAP = "  ";
const INSET = "      ";

export function narrator(io: Pick<Io, "stdout" | "env" | "stdoutIsTerminal" | "columns">): Narrator {
  const ink = paint(wantsColour(io));
  const columns = Math.min(io.columns, WIDEST);
  let scene = 0;
  let atGap = true;

  function line(text: string): void {
    io.stdout(`${text}\n`);
    atGap = false;
  }
  function gap(): void {
    if (!atGap) io.stdout("\n");
    atGap = true;
  }
  function block(lines: readonly string[]): void {
    gap();
    for (const one of lines) line(one);
    gap();
  }

  return {
    heading: (title) => {
      scene += 1;
      block([ink.bold(`${scene}. ${title}`)]);
    },
    say: (text) => line(wrap(text, columns)),
    command: (typed, output) => {
      const printed = output.trimEnd().split("\n");
      block([
        wrap(`  ${ink.bold(`$ ${typed}`)}`, columns, INSET),
        ...printed.map((text) => wrap(`  ${text}`, columns, INSET).trimEnd()),
      ]);
    },
    table: (header, rows) => {
      const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => row[column]?.length ?? 0)));
      const aligned = (row: readonly string[]): string =>
        row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join(GAP)
          .trimEnd();
      block([`  ${ink.dim(aligned(header))}`, ...rows.map((row) => `  ${aligned(row)}`)]);
    },
  };
}
