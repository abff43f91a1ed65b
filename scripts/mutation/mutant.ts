import { readFileSync } from "node:fs";
import type { Stryker } from "@stryker-mutator/core";

export interface Mutant {
  readonly file: string;
  readonly line: number;
  readonly mutator: string;
  /** The mutated source as `original -> replacement`, on one line. */
  readonly change: string;
  readonly status: string;
}

export type MutantResult = Awaited<ReturnType<Stryker["runMutationTest"]>>[number];

export function mutantOf({ fileName, location, mutatorName, replacement, status }: MutantResult): Mutant {
  const file = fileName.slice(fileName.indexOf("src/"));
  const change = `${excerpt(file, location)} -> ${oneLine(replacement ?? "")}`;
  return { file, line: location.start.line, mutator: mutatorName, change, status };
}

export function isKilled({ status }: Mutant): boolean {
  return status === "Killed" || status === "Timeout";
}

/** Mutants that fail to run count as neither. */
export function isSurvivor({ status }: Mutant): boolean {
  return status === "Survived" || status === "NoCoverage";
}

function excerpt(file: string, { start, end }: MutantResult["location"]): string {
  const lines = readFileSync(file, "utf8").split("\n");
  const taken = lines.slice(start.line - 1, end.line);
  const last = taken.length - 1;
  const cut = taken.map((line, index) =>
    line.slice(index === 0 ? start.column - 1 : 0, index === last ? end.column - 1 : undefined),
  );
  return oneLine(cut.join(" "));
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
