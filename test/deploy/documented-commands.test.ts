import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { COMMAND_NAMES, commandNamed } from "../../src/cli/commands/index.ts";
import { kebab } from "../../src/cli/settings/table.ts";

const PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", ...globSync("docs/**/*.md")];

/** Flags that every command has. */
const EVERYWHERE = ["--help", "-h", "--version", "-V"];

interface Shown {
  readonly line: string;
  readonly name: string;
  readonly flags: readonly string[];
}

/** `unghost COMMAND …` in code: blocks and spans. Prose says "unghost scans" as well. */
function commandsIn(page: string): readonly Shown[] {
  const text = readFileSync(page, "utf8");
  const blocks = [...text.matchAll(/```[a-z]*\n(.*?)```/gs)].flatMap(([, block = ""]) => block.split("\n"));
  const spans = [...text.replaceAll(/```.*?```/gs, "").matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
  return [...blocks, ...spans].flatMap((line) => {
    const [, rest] =
      /(?:^|^\$ |[|;&(]\s*|\s--\s|sudo )unghost ((?:[a-z]|-).*)$/.exec(line.replace(/\s+#.*$/, "")) ?? [];
    if (rest === undefined) return [];
    // The rest belongs to another command, or to the boot hook.
    const own = rest.split(/\s(?:\||&&|;|--)(?:\s|$)|`/)[0] ?? "";
    const words = own.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
    const name = words.find((word) => !word.startsWith("-")) ?? "";
    return [
      { line, name, flags: words.filter((word) => /^--?[a-zA-Z]/.test(word)).map((word) => word.split("=")[0] ?? "") },
    ];
  });
}

async function problemWith({ line, name, flags }: Shown): Promise<string | undefined> {
  if (name === "" || name === "COMMAND" || name === "…") return undefined;
  if (!COMMAND_NAMES.includes(name)) return `${line}: there is no command ${name}`;
  const parameters = (await commandNamed(name))?.parameters;
  const known = [
    ...EVERYWHERE,
    ...Object.keys(parameters?.flags ?? {}).map((flag) => `--${kebab(flag)}`),
    ...Object.keys(parameters?.aliases ?? {}).map((letter) => `-${letter}`),
  ];
  const unknown = flags.filter((flag) => !known.includes(flag) && !/^-o[a-z]+$/.test(flag));
  return unknown.length === 0 ? undefined : `${line}: ${name} has no ${unknown.join(", ")}`;
}

test.each(PAGES)("every unghost command in %s exists, with its flags", async (page) => {
  const problems = await Promise.all(commandsIn(page).map(problemWith));

  expect(problems.filter((problem) => problem !== undefined)).toEqual([]);
});

test("the pages contain commands", () => {
  expect(commandsIn("README.md").length).toBeGreaterThan(8);
  expect(commandsIn("docs/operations.md").length).toBeGreaterThan(15);
});
