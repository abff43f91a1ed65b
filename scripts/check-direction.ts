/** The flow through the house goes one way. This fails when a room imports from one it must not know. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** Room -> rooms it may import from, besides itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  runtime: [],
  explain: ["classes", "snapshot"],
  snapshot: ["runtime", "explain"],
  classes: ["snapshot", "explain"],
  plan: ["classes", "snapshot"],
  heal: ["plan", "classes", "snapshot", "runtime", "explain"],
  report: ["classes", "plan", "heal", "snapshot", "explain"],
  cli: ["runtime", "snapshot", "classes", "plan", "heal", "report", "explain"],
  main: ["cli"],
};

const IMPORT = /(?:from|import\()\s*"(\.[^"]+)"/g;

function roomOf(file: string): string {
  const [first = ""] = relative("src", file).split("/");
  return first.replace(/\.ts$/, "");
}

const wrong: string[] = [];
for (const file of globSync("src/**/*.ts")) {
  const room = roomOf(file);
  const allowed = MAY_IMPORT[room];
  if (allowed === undefined) {
    wrong.push(`${file}: "${room}" is no room of the house; see CONTRIBUTING.md`);
    continue;
  }
  for (const [, target = ""] of readFileSync(file, "utf8").matchAll(IMPORT)) {
    const path = join(dirname(file), target);
    if (!path.startsWith("src/")) {
      if (!path.endsWith("package.json")) wrong.push(`${file} imports ${path}: nothing in src/ may need what is outside`);
      continue;
    }
    const other = roomOf(path);
    if (other !== room && !allowed.includes(other)) wrong.push(`${file} (${room}) must not import from ${other}: ${path}`);
  }
}
for (const line of wrong) console.error(line);
process.exitCode = wrong.length === 0 ? 0 : 1;
