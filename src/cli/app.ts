import { type Application, buildApplication, type RouteMap, run, type StricliProcess, text_en } from "@stricli/core";
import type { Context } from "./commands/context.ts";
import { routesFor } from "./commands/index.ts";
import { ExitCode } from "./exit-codes.ts";
import { failureCode, failureSentence } from "./failure.ts";
import type { Io } from "./io.ts";
import { VERSION } from "./version.ts";

function application(routes: RouteMap<Context>, verbose: boolean): Application<Context> {
  const text = { ...text_en, exceptionWhileRunningCommand: (thrown: unknown) => failureSentence(thrown, verbose) };
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
export async function runCli(args: readonly string[], io: Io): Promise<number> {
  let decided: ExitCode | undefined;
  const world: StricliProcess = { stdout: { write: io.stdout }, stderr: { write: io.stderr }, env: io.env };
  const context: Context = {
    process: world,
    io,
    finish: (code) => {
      decided = code;
    },
  };
  const routes = await routesFor(args);
  await run(application(routes, asksForMore(args)), args.length === 0 ? ["--help"] : args, context);
  if (decided !== undefined) return decided;
  const code = Number(world.exitCode ?? ExitCode.ok);
  // Below zero are stricli's own, for command lines that it could not make sense of.
  return code < 0 ? ExitCode.usage : code;
}

/** Asked of the bare words: a failure may come before they are understood. */
function asksForMore(args: readonly string[]): boolean {
  return args.includes("-v") || args.includes("--verbose");
}
