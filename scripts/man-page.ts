/** Writes docs/man/unghost.1 from the commands' own descriptions; with --check it only says whether it is current. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { argumentEntries, flagEntries } from "../src/cli/commands/help.ts";
import { COMMAND_NAMES, commandNamed } from "../src/cli/commands/index.ts";
import { COMMAND_NOTES } from "../src/cli/commands/notes.ts";
import { VERSION } from "../src/cli/version.ts";

const PAGE = "docs/man/unghost.1";

const commands = await Promise.all(
  COMMAND_NAMES.map(async (name) => {
    const command = await commandNamed(name);
    const notes = COMMAND_NOTES.get(name);
    if (command === undefined || notes === undefined) throw new Error(`${name} has no description`);
    return { name, notes, flags: flagEntries(command), args: argumentEntries(command) };
  }),
);
/** Flags of every node command are described once, with their letter if a command defines one. */
const common = new Map(
  commands
    .flatMap(({ flags }) => flags.filter(({ isCommon }) => isCommon))
    .toSorted((one, other) => one.label.localeCompare(other.label))
    .map(({ label, brief }) => [/--[a-z-]+/.exec(label)?.[0] ?? label, { label: label.trim(), brief }] as const),
);

const lines = [
  `.TH UNGHOST 1 "" "unghost ${VERSION}" "User Commands"`,
  ".SH NAME",
  "unghost \\- find and heal ghost pod sandboxes on Kubernetes nodes",
  ".SH SYNOPSIS",
  ".B unghost",
  ".I COMMAND",
  "[flags]",
  ".SH DESCRIPTION",
  roff(
    "A ghost is a pod sandbox that is dead but not gone: it keeps its name reserved in the container runtime, or its removal fails forever, so that its pod can never start again. unghost scan shows ghosts and what they block; unghost heal removes the obstacle, lets the runtime release the name, and verifies the effect. Every change is written to a journal before it is made.",
  ),
  ".SH COMMANDS",
  ...commands.flatMap(({ name, notes, flags, args }) => [
    `.SS unghost ${[name, "[flags]", ...(notes.usage === undefined ? args.map(({ usage }) => usage) : [notes.usage])].map(roff).join(" ")}`,
    roff(`${notes.summary}.`),
    ...args.flatMap(({ label, brief }) => entry(label, brief)),
    ...flags.filter(({ isCommon }) => !isCommon).flatMap(({ label, brief }) => entry(label.trim(), brief)),
    ".PP",
    roff(`Exit codes: ${notes.exits}.`),
    ".PP",
    "Examples:",
    ...notes.examples.flatMap(([line, purpose]) => entry(line, purpose)),
  ]),
  ".SH COMMON FLAGS",
  ...[...common.values()].flatMap(({ label, brief }) => entry(label, brief)),
  ".SH FILES",
  ...entry("/etc/unghost/config.yaml", "configuration; unghost config shows the effective one"),
  ...entry("/var/lib/unghost", "journal, quarantine, and what the agent remembers"),
  ".SH ENVIRONMENT",
  ...entry("UNGHOST_...", "every common flag: --min-age is UNGHOST_MIN_AGE; a flag overrides the environment"),
  ...entry("NO_COLOR", "no colours"),
];

function entry(label: string, text: string): readonly string[] {
  return [".TP", `.B ${roff(label)}`, roff(text)];
}

/** Escapes roff requests and escapes. */
function roff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("…", "...")
    .replaceAll("-", "\\-")
    .replace(/^(?=[.'])/, "\\&");
}

const page = `${lines.join("\n")}\n`;
if (process.argv.includes("--check")) {
  if (readFileSync(PAGE, "utf8") !== page) {
    console.error(`${PAGE} is not current: run \`make docs\` and commit it`);
    process.exitCode = 1;
  }
} else {
  mkdirSync(dirname(PAGE), { recursive: true });
  writeFileSync(PAGE, page);
}
