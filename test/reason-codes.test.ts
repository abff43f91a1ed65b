import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { FOREIGN_PID_NAMESPACE } from "../src/node/machine.ts";

/** Codes that are constants, because they are also the code of a problem. */
const CONSTANTS: Readonly<Record<string, string>> = { FOREIGN_PID_NAMESPACE };
/** Some files import it as reasonFor, because they have reasons of that name. */
const MADE = /(?<!function )\breason(?:For)?\(\s*("([^"]+)"|[A-Z_]+)/g;

function codesMade(): readonly string[] {
  const texts = globSync("src/**/*.{ts,tsx}").map((path) => readFileSync(path, "utf8"));
  const made = texts.flatMap((text) => [...text.matchAll(MADE)]);
  return sorted(made.map(([, argument = "", code]) => code ?? CONSTANTS[argument] ?? `unknown constant ${argument}`));
}

function codesDocumented(): readonly string[] {
  const rows = readFileSync("docs/reason-codes.md", "utf8").matchAll(/^\| `([a-z-]+)` \|/gm);
  return [...rows].map(([, code = ""]) => code);
}

function sorted(codes: readonly string[]): readonly string[] {
  return [...new Set(codes)].toSorted();
}

/** Users script against them: a code that is renamed or new shows here, and in docs/reason-codes.md. */
test("every code of a reason is documented once, and every documented code is made", () => {
  const documented = codesDocumented();

  expect(codesMade()).toEqual(sorted(documented));
  expect(documented).toHaveLength(new Set(documented).size);
});
