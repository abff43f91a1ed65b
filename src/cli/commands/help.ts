import type { Command } from "@stricli/core";
import { wrap } from "../../report/words.ts";
import { ExitCode, type Io } from "../io.ts";
import { kebab, nodeFlags } from "../settings/table.ts";
import { type Context, commandNamed, defineCommand, noSuchCommand, oneArgument } from "./index.ts";
import { COMMAND_NOTES, type CommandNotes } from "./notes.ts";

export const helpCommand = defineCommand({
  flags: {},
  positional: oneArgument("COMMAND", "The command (default: an overview)"),
  run: (_flags, io, name) => showHelp(name, io),
});

const GROUPS = ["Find and heal", "Run unattended", "Review", "Set up"] as const;
const MAX_COLUMNS = 100;

/** All commands, by purpose. */
function renderOverview(columns: number): string {
  const width = Math.min(columns, MAX_COLUMNS);
  const parts = [
    "unghost finds and heals ghost pod sandboxes on Kubernetes nodes.",
    "",
    "Usage: unghost COMMAND [flags]",
  ];
  for (const group of GROUPS) {
    const rows = [...COMMAND_NOTES].filter(([, notes]) => notes.group === group);
    parts.push(
      "",
      `${group}:`,
      ...entries(
        rows.map(([name, { summary }]) => [name, summary]),
        width,
      ),
    );
  }
  parts.push("", "Start with: unghost scan", "Help for a command: unghost help COMMAND");
  return `${parts.map((part) => (part.startsWith(" ") ? part : wrap(part, width, "  "))).join("\n")}\n`;
}

/** One command: usage, arguments, three examples, its own flags, then the common ones. */
function renderCommandHelp(name: string, notes: CommandNotes, command: Command<Context>, columns: number): string {
  const width = Math.min(columns, MAX_COLUMNS);
  const flags = flagEntries(command);
  const own = flags.filter(({ isCommon }) => !isCommon);
  const common = flags.filter(({ isCommon }) => isCommon);
  const args = argumentEntries(command);
  const words = notes.usage === undefined ? args.map(({ usage: text }) => text) : [notes.usage];
  const usage = ["unghost", name, ...(flags.length > 0 ? ["[flags]"] : []), ...words];
  const lines = [wrap(`${notes.summary}.`, width), "", wrap(`Usage: ${usage.join(" ")}`, width, "  ")];
  const section = (title: string, rows: readonly (readonly [string, string])[]) => {
    if (rows.length > 0) lines.push("", `${title}:`, ...entries(rows, width));
  };
  section(
    "Arguments",
    args.map(({ label, brief }) => [label, brief]),
  );
  section(
    "Examples",
    notes.examples.map(([line, purpose]) => [line, purpose]),
  );
  section(
    "Flags",
    own.map(({ label, brief }) => [label, brief]),
  );
  section(
    "Common flags",
    common.map(({ label, brief }) => [label, brief]),
  );
  lines.push("", wrap(`Exit codes: ${notes.exits}`, width, "  "));
  return `${lines.join("\n")}\n`;
}

interface FlagEntry {
  readonly label: string;
  readonly brief: string;
  readonly isCommon: boolean;
}

export function flagEntries({ parameters }: Command<Context>): readonly FlagEntry[] {
  const aliases = new Map(Object.entries(parameters.aliases ?? {}).map(([letter, flag]) => [flag, letter]));
  return Object.entries(parameters.flags ?? {}).flatMap(([name, flag]) => {
    if ("hidden" in flag && flag.hidden) return [];
    const letter = aliases.get(name);
    const value = "placeholder" in flag && flag.placeholder !== undefined ? ` ${flag.placeholder}` : "";
    const many = "variadic" in flag && flag.variadic !== undefined ? ",..." : "";
    const label = `${letter === undefined ? "    " : `-${letter}, `}--${kebab(name)}${value}${value === "" ? "" : many}`;
    // A common flag with its own description belongs to the command.
    const isCommon =
      Object.hasOwn(nodeFlags, name) && Object.entries(nodeFlags).some(([, one]) => one.brief === flag.brief);
    return [{ label, brief: flag.brief, isCommon }];
  });
}

export function argumentEntries({ parameters: { positional } }: Command<Context>) {
  if (positional === undefined) return [];
  if (positional.kind === "array") {
    const { placeholder = "ARG", brief } = positional.parameter;
    return [{ label: placeholder, brief, usage: `[${placeholder}]...` }];
  }
  return positional.parameters.map(({ placeholder = "ARG", brief, optional = false }) => ({
    label: placeholder,
    brief,
    usage: optional ? `[${placeholder}]` : placeholder,
  }));
}

/** With a longer label, or on a narrow terminal, the text is below the label. */
const WIDEST_LABEL = 34;

function entries(rows: readonly (readonly [string, string])[], width: number): readonly string[] {
  const widest = Math.min(WIDEST_LABEL, Math.max(...rows.map(([label]) => label.length)));
  const isNarrow = width < widest + 30;
  const indent = " ".repeat(isNarrow ? 8 : widest + 4);
  return rows.flatMap(([label, text]) => {
    const body = wrap(indent + text, width, indent);
    if (isNarrow || label.length > widest) return [`  ${label}`, body];
    return [`  ${label.padEnd(widest)}  ${body.trimStart()}`];
  });
}

/** Help for one command, or the overview. */
export async function showHelp(name: string | undefined, io: Io): Promise<ExitCode> {
  if (name === undefined) {
    io.stdout(renderOverview(io.columns));
    return ExitCode.ok;
  }
  const command = await commandNamed(name);
  const notes = COMMAND_NOTES.get(name);
  if (command === undefined || notes === undefined) {
    io.stderr(`${noSuchCommand(name)}\n`);
    return ExitCode.usage;
  }
  io.stdout(renderCommandHelp(name, notes, command, io.columns));
  return ExitCode.ok;
}
