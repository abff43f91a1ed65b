import {
  buildCommand,
  buildRouteMap,
  type Command,
  type CommandContext,
  type RouteMap,
  type TypedCommandParameters,
} from "@stricli/core";
import { printable } from "../../host/text.ts";
import type { ExitCode, Io } from "../io.ts";
import type { FlagValues } from "../settings/table.ts";
import { didYouMean } from "../suggest.ts";

/** Loaded on demand, each with its own dependencies, for a fast start. */
const commands: ReadonlyMap<string, () => Promise<Command<Context>>> = new Map([
  ["scan", async () => (await import("./scan.ts")).scanCommand],
  ["heal", async () => (await import("./heal.ts")).healCommand],
  ["explain", async () => (await import("./explain.ts")).explainCommand],
  ["fleet", async () => (await import("./fleet.ts")).fleetCommand],
  ["boot", async () => (await import("./boot.ts")).bootCommand],
  ["agent", async () => (await import("./agent.ts")).agentCommand],
  ["keep", async () => (await import("./keep.ts")).keepCommand],
  ["history", async () => (await import("./history.ts")).historyCommand],
  ["undo", async () => (await import("./undo.ts")).undoCommand],
  ["quarantine", async () => (await import("./quarantine.ts")).quarantineCommand],
  ["bundle", async () => (await import("./bundle.ts")).bundleCommand],
  ["doctor", async () => (await import("./doctor.ts")).doctorCommand],
  ["config", async () => (await import("./config.ts")).configCommand],
  ["withdraw", async () => (await import("./withdraw.ts")).withdrawCommand],
  ["install", async () => (await import("./install.ts")).installCommand],
  ["uninstall", async () => (await import("./uninstall.ts")).uninstallCommand],
  ["cni", async () => (await import("./cni.ts")).cniCommand],
  ["completion", async () => (await import("./completion.ts")).completionCommand],
  ["version", async () => (await import("./version.ts")).versionCommand],
  ["help", async () => (await import("./help.ts")).helpCommand],
]);

export const COMMAND_NAMES: readonly string[] = [...commands.keys()];

export async function commandNamed(name: string): Promise<Command<Context> | undefined> {
  return await commands.get(name)?.();
}

/** The command of a command line; without one, help is used, and the application reports the error. */
export async function routesFor([first = ""]: readonly string[]): Promise<RouteMap<Context>> {
  const name = commands.has(first) ? first : "help";
  const command = await commandNamed(name);
  return buildRouteMap<string, Context>({ routes: command === undefined ? {} : { [name]: command }, docs: NO_BRIEF });
}

/** stricli asks for a text that nothing shows: help, man page and completion use the command notes. */
const NO_BRIEF = { brief: "" } as const;

export interface Context extends CommandContext {
  readonly io: Io;
  /** The command's exit code; stricli's own codes never overlap with ours. */
  finish(code: ExitCode): void;
}

/** Any number of arguments, one that may be left out, or one. */
type ArgumentValues<Positional> = Positional extends { readonly kind: "array" }
  ? readonly string[]
  : Positional extends { readonly parameters: readonly [{ readonly parse: (input: string) => infer Value }] }
    ? Positional extends { readonly parameters: readonly [{ readonly optional: true }] }
      ? readonly [Value?]
      : readonly [Value]
    : readonly [];

interface CommandParts<Flags, Positional> {
  readonly flags: Flags;
  readonly aliases?: Readonly<Record<string, keyof Flags>>;
  readonly positional?: Positional;
  readonly run: (flags: FlagValues<Flags>, io: Io, ...args: ArgumentValues<Positional>) => ExitCode | Promise<ExitCode>;
}

/** A command of the table above. The types of its values follow from the definitions of its parameters. */
export function defineCommand<const Flags, const Positional = undefined>({
  run,
  ...parts
}: CommandParts<Flags, Positional>) {
  type Args = ArgumentValues<Positional>;
  return buildCommand<FlagValues<Flags>, Args, Context>({
    docs: NO_BRIEF,
    // stricli spells the type of a definition as a function of the value's type.
    parameters: parts as unknown as TypedCommandParameters<FlagValues<Flags>, Args, Context>,
    func: async function (flags, ...args) {
      this.finish(await run(flags, this.io, ...args));
    },
  });
}

export function oneArgument(placeholder: string, brief: string) {
  return { kind: "tuple", parameters: [{ parse: String, optional: true, brief, placeholder }] } as const;
}

export function anyArguments(placeholder: string, brief: string) {
  return { kind: "array", parameter: { parse: String, brief, placeholder } } as const;
}

/** A typo must never lead to a command that changes the node. */
const CHANGES_THE_NODE = ["heal", "boot", "agent", "undo", "quarantine", "install", "uninstall", "cni", "withdraw"];

export function noSuchCommand(name: string): string {
  const harmless = COMMAND_NAMES.filter((known) => !CHANGES_THE_NODE.includes(known));
  const suggestion = didYouMean(name, harmless) || ".";
  return `unghost: there is no command "${printable(name)}"${suggestion} unghost help lists the commands.`;
}
