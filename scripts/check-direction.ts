/**
 * Imports go in one direction. This fails if a directory of src/ imports from one that it must not depend on, if two
 * directories import each other at any depth, if something outside src/classes/ names a single failure class, or if scan
 * loads more than it may.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { classes } from "../src/classes/index.ts";

/** Directory -> directories it may import from, besides itself. Each names only those above it. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  host: [],
  runtime: ["host"],
  kube: ["host"],
  node: ["runtime", "kube", "host"],
  durable: ["node", "runtime", "host"],
  guard: ["node", "host"],
  logs: ["node", "host"],
  evidence: ["logs", "node", "kube", "host"],
  classes: ["logs", "node", "host", "evidence"],
  diagnose: ["classes", "logs", "node", "host", "evidence"],
  plan: ["diagnose", "classes", "node", "host", "evidence"],
  heal: ["plan", "diagnose", "classes", "node", "kube", "runtime", "host", "evidence"],
  boot: ["durable", "heal", "plan", "diagnose", "classes", "node", "runtime", "host", "evidence"],
  report: ["heal", "plan", "diagnose", "classes", "logs", "node", "host", "evidence"],
  doctor: ["report", "boot", "diagnose", "evidence", "durable", "node", "kube", "host"],
  bundle: ["node", "host"],
  agent: ["durable", "report", "heal", "plan", "diagnose", "classes", "node", "kube", "runtime", "host", "evidence"],
  fleet: ["report", "doctor", "diagnose", "classes", "kube", "host", "evidence"],
  cli: [
    "guard",
    "bundle",
    "agent",
    "fleet",
    "doctor",
    "boot",
    "report",
    "heal",
    "plan",
    "diagnose",
    "classes",
    "durable",
    "node",
    "kube",
    "runtime",
    "host",
    "evidence",
  ],
  library: ["report", "diagnose", "classes"],
  main: ["cli", "host"],
};

const IMPORT_OF_VALUES = /(?:import (?!type )[^;]*? from|import\()\s*"(\.[^"]+)"/g;
const STATIC_IMPORT_OF_VALUES = /(?:^|\n)(?:import|export) (?!type )[^;"]*? from\s*"(\.[^"]+)"/g;
const IMPORT = /(?:from|import\()\s*"(\.[^"]+)"/g;

/** All that the rest of src/ may know of the classes: whatever it asks of one is a field of FailureClass. */
const CLASS_REGISTRY = new Set(["src/classes/index.ts", "src/classes/failure-class.ts"]);
/** Where a class is defined, its id follows `id:`. */
const QUOTED_ID = new RegExp(`(?<!\\bid: )["'\`](${classes.map(({ id }) => id).join("|")})(?:["'\`]|/\\$)`, "g");

function directoryOf(file: string): string {
  const [first = ""] = relative("src", file).split("/");
  return first.replace(/\.ts$/, "");
}

/** The two directories that an import connects: below the last one that both paths share. Missing within one directory. */
function siblingsOf(file: string, target: string): readonly [string, string] | undefined {
  const from = dirname(file).split("/");
  const to = dirname(target).split("/");
  const shared = from.findIndex((name, index) => name !== to[index]);
  if (shared === -1 || shared >= to.length) return undefined;
  return [from.slice(0, shared + 1).join("/"), to.slice(0, shared + 1).join("/")];
}

/** "A B" -> an import from directory A to its sibling B. */
const betweenSiblings = new Map<string, string>();
const wrong: string[] = [];
const directories = Object.keys(MAY_IMPORT);
for (const [directory, allowed] of Object.entries(MAY_IMPORT)) {
  const below = allowed.filter((other) => directories.indexOf(other) >= directories.indexOf(directory));
  if (below.length > 0)
    wrong.push(`the table lets ${directory} import from ${below.join(", ")}: the flow goes one way`);
}
for (const file of globSync("src/**/*.{ts,tsx}")) {
  const directory = directoryOf(file);
  const allowed = MAY_IMPORT[directory];
  if (allowed === undefined) {
    wrong.push(`${file}: "${directory}" is not in the architecture; see CONTRIBUTING.md`);
    continue;
  }
  const text = readFileSync(file, "utf8");
  if (file !== "src/host/child.ts" && text.includes("child_process")) {
    wrong.push(`${file} starts a process on its own: only src/host/child.ts does, where every child has a deadline`);
  }
  if (!file.includes("/gen/")) {
    for (const [, id] of text.matchAll(QUOTED_ID))
      wrong.push(`${file} names the class ${id}: what it asks of the class has to be a field of FailureClass`);
  }
  for (const [, target = ""] of text.matchAll(IMPORT)) {
    const path = join(dirname(file), target);
    if (!path.startsWith("src/")) {
      if (!path.endsWith("package.json"))
        wrong.push(`${file} imports ${path}: nothing in src/ may need what is outside`);
      continue;
    }
    if (directory !== "classes" && path.startsWith("src/classes/") && !CLASS_REGISTRY.has(path))
      wrong.push(`${file} imports ${path}: what it asks of the class has to be a field of FailureClass`);
    const siblings = siblingsOf(file, path);
    if (siblings !== undefined) betweenSiblings.set(siblings.join(" "), `${file} imports ${path}`);
    const other = directoryOf(path);
    if (other !== directory && !allowed.includes(other))
      wrong.push(`${file} (${directory}) must not import from ${other}: ${path}`);
  }
}
for (const [pair, there] of betweenSiblings) {
  const [one = "", other = ""] = pair.split(" ");
  const back = betweenSiblings.get(`${other} ${one}`);
  if (back !== undefined && one < other) wrong.push(`${one} and ${other} import each other: ${there}, ${back}`);
}
/** Functions of node:fs and calls of an API that change a node. Opening a file is not one: readers do it, too. */
const CHANGES_FILES =
  /^(?:writeFile|appendFile|rename|unlink|rm|rmdir|mkdir|mkdtemp|chmod|lchmod|chown|lchown|utimes|lutimes|symlink|link|copyFile|cp|truncate|ftruncate)(?:Sync)?$/;
const CHANGES_NODE =
  /\.(?:stopPodSandbox|removePodSandbox|runPodSandbox|startContainer|stopContainer|removeContainer|createContainer|deleteContainer|deleteSandbox|deleteLease)\(|\bprocess\.kill\(|\bapi\.(?:create|patch|apply|replace|delete)\(|\bdeletePod\(/;
/** What heal/ changes a node with: its steps, and the move to quarantine. */
const TOOLS_OF_HEAL = /^src\/heal\/(?:steps\/|quarantine\/(?:quarantine|move-away)\.ts$|run-)/;
/** Why these may change what they change. None of it is a sandbox, its files, its processes or its records. */
const MAY_CHANGE: readonly (readonly [path: string, reason: string])[] = [
  ["src/boot/install/", "installs unghost's own units"],
  ["src/boot/boot.ts", "the report of a boot, in its own directory of /run"],
  ["src/boot/borrowed-runtime.ts", "the private directory of the borrowed containerd"],
  ["src/agent/metrics/agent-metrics.ts", "the metrics file"],
  ["src/agent/kube/", "exporters: the condition of its own node, events, and their withdrawal"],
  [
    "src/guard/",
    "a CNI plugin that runs others for the runtime: it changes what the runtime asked for, and its own state; the search path is installed like a unit",
  ],
  ["src/durable/keeper-state.ts", "its own state, in its own directory of /run"],
  ["src/agent/limits/slots.ts", "slots and breaker of the fleet"],
  ["src/fleet/one-shot/run.ts", "the Job of a one-shot pod, whose unghost goes through heal/ like any other"],
  ["src/doctor/permissions.ts", "asks the API for its own permissions"],
  ["src/host/child.ts", "ends its own child processes"],
  ["src/kube/pods.ts", "deletePod, for heal/"],
  ["src/kube/ghost-heal.ts", "requests of an operator to a node, and the answers of its agent"],
  ["src/kube/ghost-report.ts", "the GhostReport of its own node, for the exporters"],
];
/** The guard itself, the child that may hang, and system calls of a child. */
const MAY_WAIT = new Set([
  "src/host/guarded-fs.ts",
  "src/host/memory-child.ts",
  "src/host/mount-child.ts",
  "src/host/system-call.ts",
]);
const IMPORT_OF_FS = /\{([^{}]*)\}\s*(?:from|= await import\()\s*"node:fs(?:\/promises)?"/g;
const ALL_OF_FS = /import (?:\w+|\* as \w+)(?:, [^"]*)? from "(?:node:)?fs(?:\/promises)?"/;
for (const file of globSync("src/**/*.{ts,tsx}")) {
  if (file.startsWith("src/heal/")) continue;
  const text = readFileSync(file, "utf8");
  for (const [, target = ""] of text.matchAll(IMPORT_OF_VALUES)) {
    if (TOOLS_OF_HEAL.test(join(dirname(file), target)))
      wrong.push(`${file} imports ${target}: a node is changed through run() of src/heal/pipeline.ts only`);
  }
  if (MAY_CHANGE.some(([path]) => file.startsWith(path))) continue;
  const names = [...text.matchAll(IMPORT_OF_FS)].flatMap(([, list = ""]) => list.split(",").map((name) => name.trim()));
  const changing =
    names.find((name) => CHANGES_FILES.test(name)) ?? CHANGES_NODE.exec(text)?.[0] ?? ALL_OF_FS.exec(text)?.[0];
  if (changing !== undefined) wrong.push(`${file} uses ${changing}: only src/heal/ changes a node`);
}
// A plain read waits for a FIFO, follows links, and takes as much memory as the file claims to have.
for (const file of globSync("src/**/*.{ts,tsx}")) {
  if (/\breadFile(?:Sync)?\b/.test(readFileSync(file, "utf8")) && file !== "src/host/safe-fs.ts")
    wrong.push(`${file} reads a file without a limit: only src/host/safe-fs.ts does, as readRegularFile and fileBytes`);
}
// Every read of a path of the node fails for a mount that does not answer.
const WAITS =
  /\b(?:lstatSync|statSync|statfsSync|openSync|opendirSync|readlinkSync|existsSync|readdirSync|accessSync)\b/;
for (const file of globSync("src/{host,node,runtime,kube}/**/*.ts")) {
  const text = readFileSync(file, "utf8");
  const names = [...text.matchAll(IMPORT_OF_FS)].map(([, list = ""]) => WAITS.exec(list)?.[0]).find(Boolean);
  if (names !== undefined && !MAY_WAIT.has(file))
    wrong.push(
      `${file} imports ${names} from node:fs: src/host/guarded-fs.ts has it, and does not wait for a mount that hangs`,
    );
}
for (const [path] of MAY_CHANGE) {
  if (globSync(`${path}**`).length === 0) wrong.push(`${path} is an exception for what does not exist`);
}
// A scan carries its plan, so that a node is planned once a scan.
for (const file of globSync("src/**/*.ts")) {
  if (file !== "src/plan/scan.ts" && file !== "src/plan/plan.ts" && readFileSync(file, "utf8").includes("planHealing"))
    wrong.push(`${file} plans on its own: scanNode (src/plan/scan.ts) does, and its result carries the plan`);
}
// A scan starts in milliseconds, and each module of src/ that it loads at its start costs some of them.
const MOST_OF_SCAN = 100;
const atStart = new Set<string>();
const unread = ["src/cli/commands/scan.ts"];
for (let file = unread.pop(); file !== undefined; file = unread.pop()) {
  if (atStart.has(file)) continue;
  atStart.add(file);
  for (const [, target = ""] of readFileSync(file, "utf8").matchAll(STATIC_IMPORT_OF_VALUES)) {
    const path = join(dirname(file), target);
    if (path.startsWith("src/") && !path.includes("/gen/")) unread.push(path);
  }
}
if (atStart.size > MOST_OF_SCAN)
  wrong.push(
    `scan loads ${atStart.size} modules at its start, of at most ${MOST_OF_SCAN}: load late what few scans need`,
  );
for (const line of wrong) console.error(line);
process.exitCode = wrong.length === 0 ? 0 : 1;
