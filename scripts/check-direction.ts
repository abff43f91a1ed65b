/** The flow through the house goes one way. This fails when a room imports from one it must not know. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** Room -> rooms it may import from, besides itself. In the order of the flow: each names only rooms above it. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  child: [],
  distributions: [],
  runtime: ["distributions"],
  kube: ["distributions"],
  snapshot: ["runtime", "kube", "distributions", "child"],
  keeper: ["snapshot", "runtime", "distributions"],
  liveness: ["snapshot"],
  classes: ["liveness", "snapshot"],
  explain: ["classes", "snapshot"],
  diagnose: ["classes", "liveness", "snapshot", "explain"],
  plan: ["diagnose", "classes", "snapshot"],
  heal: ["plan", "diagnose", "explain", "classes", "liveness", "snapshot", "kube", "runtime", "child"],
  boot: ["distributions", "keeper", "heal", "plan", "diagnose", "classes", "liveness", "snapshot", "runtime", "child"],
  report: ["heal", "plan", "diagnose", "explain", "classes", "liveness", "snapshot"],
  doctor: ["report", "snapshot", "kube"],
  fleet: ["plan", "classes", "snapshot", "kube"],
  agent: [
    "distributions",
    "keeper",
    "fleet",
    "report",
    "heal",
    "plan",
    "diagnose",
    "explain",
    "classes",
    "snapshot",
    "kube",
    "runtime",
    "child",
  ],
  cli: [
    "agent",
    "distributions",
    "doctor",
    "keeper",
    "fleet",
    "boot",
    "report",
    "heal",
    "plan",
    "diagnose",
    "explain",
    "classes",
    "snapshot",
    "runtime",
    "child",
  ],
  main: ["cli", "child"],
};

const IMPORT = /(?:from|import\()\s*"(\.[^"]+)"/g;

function roomOf(file: string): string {
  const [first = ""] = relative("src", file).split("/");
  return first.replace(/\.ts$/, "");
}

const wrong: string[] = [];
const rooms = Object.keys(MAY_IMPORT);
for (const [room, allowed] of Object.entries(MAY_IMPORT)) {
  const below = allowed.filter((other) => rooms.indexOf(other) >= rooms.indexOf(room));
  if (below.length > 0) wrong.push(`the table lets ${room} import from ${below.join(", ")}: the flow goes one way`);
}
for (const file of globSync("src/**/*.{ts,tsx}")) {
  const room = roomOf(file);
  const allowed = MAY_IMPORT[room];
  if (allowed === undefined) {
    wrong.push(`${file}: "${room}" is no room of the house; see CONTRIBUTING.md`);
    continue;
  }
  const text = readFileSync(file, "utf8");
  if (room !== "child" && text.includes("child_process")) {
    wrong.push(`${file} starts a process by itself: only src/child/ does, where every child has a deadline`);
  }
  for (const [, target = ""] of text.matchAll(IMPORT)) {
    const path = join(dirname(file), target);
    if (!path.startsWith("src/")) {
      if (!path.endsWith("package.json"))
        wrong.push(`${file} imports ${path}: nothing in src/ may need what is outside`);
      continue;
    }
    const other = roomOf(path);
    if (other !== room && !allowed.includes(other))
      wrong.push(`${file} (${room}) must not import from ${other}: ${path}`);
  }
}
for (const line of wrong) console.error(line);
process.exitCode = wrong.length === 0 ? 0 : 1;
