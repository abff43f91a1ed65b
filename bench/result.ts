import type { Summary } from "./measure.ts";

export interface Bar {
  readonly name: string;
  readonly value: number;
  readonly most: number;
}

/** What one benchmark found. */
export interface Result {
  readonly title: string;
  readonly rows: readonly { readonly name: string; readonly summary: Summary }[];
  readonly bars: readonly Bar[];
  readonly notes: readonly string[];
}

export function isMissed({ value, most }: Bar): boolean {
  return !(value <= most);
}

export function render({ title, rows, bars, notes }: Result): string {
  const widest = Math.max(0, ...[...rows, ...bars].map(({ name }) => name.length));
  const head = rows.length === 0 ? [] : [`  ${"".padEnd(widest)}  ${cells(["min ms", "median ms", "peak MB"])}`];
  const lines = rows.map(({ name, summary: { minMs, medianMs, peakMb } }) => {
    const numbers = [minMs.toFixed(1), medianMs.toFixed(1), peakMb === 0 ? "-" : peakMb.toFixed(0)];
    return `  ${name.padEnd(widest)}  ${cells(numbers)}`;
  });
  const verdicts = bars.map((bar) => {
    const verdict = isMissed(bar) ? "MISSED" : "ok";
    return `  ${bar.name.padEnd(widest)}  ${bar.value.toFixed(2)} (at most ${bar.most})  ${verdict}`;
  });
  return [title, ...head, ...lines, ...verdicts, ...notes.map((note) => `  ${note}`), "", ""].join("\n");
}

function cells(texts: readonly string[]): string {
  return texts.map((text) => text.padStart(9)).join("  ");
}
