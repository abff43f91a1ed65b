import { type Application, buildApplication, type RouteMap, run, type StricliProcess, text_en } from "@stricli/core";
import type { Context } from "./commands/context.ts";
import { COMMAND_NAMES, routesFor } from "./commands/index.ts";
import { COMPLETE } from "./completion/scripts.ts";
import { didYouMean } from "./config/suggest.ts";
import { ExitCode } from "./exit-codes.ts";
import { failureCode, failureSentence } from "./failure.ts";
import type { Io } from "./io.ts";
import { asksFor, normaliseArgs } from "./normalise-args.ts";
import { unknownVariables } from "./unknown-variables.ts";
import { VERSION } from "./version.ts";

/** A mistyped word must never lead to a command that changes the node. */
const CHANGES_THE_NODE = ["heal", "boot", "agent", "undo", "quarantine", "install", "uninstall"];

function application(routes: RouteMap<Context>, verbose: boolean): Application<Context> {
  const text = {
    ...text_en,
    exceptionWhileRunningCommand: (thrown: unknown) => failureSentence(thrown, verbose),
    noCommandRegisteredForInput: ({ input }: { readonly input: string }) => {
      const harmless = COMMAND_NAMES.filter((name) => !CHANGES_THE_NODE.includes(name));
      return `unghost: there is no command "${input}"${didYouMean(input, harmless)}. unghost help lists the commands.`;
    },
  };
  return buildApplication(routes, {
    name: "unghost",
    versionInfo: { currentVersion: VERSION },
    scanner: { caseStyle: "allow-kebab-for-camel" },
    documentation: { disableAnsiColor: true, caseStyle: "convert-camel-to-kebab", onlyRequiredInUsageLine: true },
    localization: { loadText: () => text },
    determineExitCode: failureCode,
  });
}

/** Runs one command line and gives its exit code. Nothing here ends the process: that is main's. */
export async function runCli(given: readonly string[], io: Io): Promise<number> {
  const args = normaliseArgs(given);
  const [first] = args;
  if (first === COMPLETE) {
    const { runComplete } = await import("./completion/complete.ts");
    return await runComplete(given.slice(1), io);
  }
  if (asksFor(args, "--version", "-V")) {
    io.stdout(`${VERSION}\n`);
    return ExitCode.ok;
  }
  if (first === undefined || asksFor(args, "--help", "-h")) {
    const { showHelp } = await import("./help/show-help.ts");
    return await showHelp(first === undefined || first.startsWith("-") ? undefined : first, io);
  }
  let decided: ExitCode | undefined;
  const world: StricliProcess = { stdout: { write: io.stdout }, stderr: { write: io.stderr }, env: io.env };
  const context: Context = {
    process: world,
    io,
    finish: (code) => {
      decided = code;
    },
  };
  for (const warning of await unknownVariables(io.env)) io.stderr(`unghost: warning: ${warning}\n`);
  const routes = await routesFor(args);
  await run(application(routes, asksFor(args, "-v", "--verbose")), args, context);
  if (decided !== undefined) return decided;
  const code = Number(world.exitCode ?? ExitCode.ok);
  // Below zero are stricli's own, for command lines that it could not make sense of.
  return code < 0 ? ExitCode.usage : code;
}
