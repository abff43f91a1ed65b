import { buildRouteMap, type Command, type CommandContext, type RouteMap } from "@stricli/core";
import type { ExitCode, Io } from "../io.ts";

/** Loaded on demand, each with its own dependencies, for a fast start. */
const commands: ReadonlyMap<string, () => Promise<Command<Context>>> = new Map([
  ["scan", async () => (await import("./scan.ts")).scanCommand],
  ["heal", async () => (await import("./heal.ts")).healCommand],
  ["explain", async () => (await import("./explain.ts")).explainCommand],
  ["boot", async () => (await import("./boot.ts")).bootCommand],
  ["agent", async () => (await import("./agent.ts")).agentCommand],
  ["keep", async () => (await import("./keep.ts")).keepCommand],
  ["history", async () => (await import("./history.ts")).historyCommand],
  ["undo", async () => (await import("./undo.ts")).undoCommand],
  ["quarantine", async () => (await import("./quarantine.ts")).quarantineCommand],
  ["doctor", async () => (await import("./doctor.ts")).doctorCommand],
  ["config", async () => (await import("./config.ts")).configCommand],
  ["withdraw", async () => (await import("./withdraw.ts")).withdrawCommand],
  ["install", async () => (await import("./install.ts")).installCommand],
  ["uninstall", async () => (await import("./uninstall.ts")).uninstallCommand],
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
  return buildRouteMap<string, Context>({
    routes: command === undefined ? {} : { [name]: command },
    docs: NO_BRIEF,
  });
}

/** stricli asks for a text that nothing shows: help, man page and completion use the command notes. */
export const NO_BRIEF = { brief: "" } as const;

export interface Context extends CommandContext {
  readonly io: Io;
  /** The command's exit code; stricli's own codes never overlap with ours. */
  finish(code: ExitCode): void;
}
