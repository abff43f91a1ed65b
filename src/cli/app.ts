import {
  AliasNotFoundError,
  type Application,
  ArgumentParseError,
  buildApplication,
  FlagNotFoundError,
  run,
  type StricliProcess,
  text_en,
  UnexpectedFlagError,
  UnexpectedPositionalError,
  UnsatisfiedFlagError,
  UnsatisfiedPositionalError,
} from "@stricli/core";
import { printable } from "../host/text.ts";
import { COMPLETE } from "./commands/completion.ts";
import { type Context, commandNamed, noSuchCommand, routesFor } from "./commands/index.ts";
import { ExitCode, type Io } from "./io.ts";
import { SettingsError } from "./settings/kinds.ts";
import { agentFlags, environmentName, kebab, NODE } from "./settings/table.ts";
import { nearestOf } from "./suggest.ts";
import { VERSION } from "./version.ts";

const NO_SUGGESTIONS = { threshold: 0, weights: { insertion: 1, deletion: 1, substitution: 1, transposition: 1 } };

async function application(args: readonly string[]): Promise<Application<Context>> {
  const routes = await routesFor(args);
  const flags = Object.keys((await commandNamed(args[0] ?? ""))?.parameters.flags ?? {});
  const verbose = asksFor(args, "-v", "--verbose");
  const text = {
    ...text_en,
    exceptionWhileRunningCommand: (thrown: unknown) => failureSentence(thrown, verbose),
    noCommandRegisteredForInput: ({ input }: { readonly input: string }) => noSuchCommand(input),
    exceptionWhileParsingArguments: (thrown: unknown) => `unghost: ${printable(argumentMistake(thrown, flags))}`,
  };
  return buildApplication(routes, {
    name: "unghost",
    versionInfo: { currentVersion: VERSION },
    // Mistyped words are compared here, in argumentMistake: stricli compares every flag of a correct line as well.
    scanner: { caseStyle: "allow-kebab-for-camel", distanceOptions: NO_SUGGESTIONS },
    documentation: { disableAnsiColor: true, caseStyle: "convert-camel-to-kebab", onlyRequiredInUsageLine: true },
    localization: { loadText: () => text },
    determineExitCode: failureCode,
  });
}

/** Runs one command line and returns its exit code. Only main ends the process. */
export async function runCli(given: readonly string[], io: Io): Promise<number> {
  const args = normaliseArgs(given);
  const [first] = args;
  if (first === COMPLETE) {
    const { runComplete } = await import("./commands/complete.ts");
    return await runComplete(given.slice(1), io);
  }
  if (asksFor(args, "--version", "-V")) {
    io.stdout(`${VERSION}\n`);
    return ExitCode.ok;
  }
  if (first === undefined || asksFor(args, "--help", "-h")) {
    const { showHelp } = await import("./commands/help.ts");
    return await showHelp(first === undefined || first.startsWith("-") ? undefined : first, io);
  }
  if (process.platform !== "linux") {
    const { whyNotHere } = await import("./operator-machine.ts");
    const reason = whyNotHere(args, process.platform);
    if (reason !== undefined) {
      io.stderr(`unghost: ${reason}\n`);
      return ExitCode.unknown;
    }
  }
  const unset = flagWithoutValue(args);
  if (unset !== undefined) {
    io.stderr(`unghost: ${unset} has no value: give one, or leave the flag out\n`);
    return ExitCode.usage;
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
  for (const warning of unknownVariables(io.env)) io.stderr(`unghost: warning: ${warning}\n`);
  await run(await application(args), args, context);
  if (decided !== undefined) return decided;
  const code = Number(world.exitCode ?? ExitCode.ok);
  // Negative codes are stricli's own, for invalid command lines.
  return code < 0 ? ExitCode.usage : code;
}

/** The message of a command that threw: one sentence with the next step. The stack is printed only with --verbose. */
export function failureSentence(thrown: unknown, verbose: boolean): string {
  const message = printable(thrown instanceof Error ? thrown.message : String(thrown));
  if (thrown instanceof SettingsError) return `unghost: ${message}`;
  if (verbose && thrown instanceof Error) return `unghost: unexpected: ${thrown.stack ?? message}`;
  const asked = verbose ? "" : " Run it again with -v and report what it prints.";
  return `unghost: unexpected: ${message}.${asked}`;
}

/** An invalid setting is a usage error; any other error means that the scan failed. */
export function failureCode(thrown: unknown): ExitCode {
  return thrown instanceof SettingsError ? ExitCode.usage : ExitCode.unknown;
}

/** Empty is its own value: the agent listens nowhere. */
const MAY_BE_EMPTY = "--listen";

/** A flag without its value, for example from an unset variable; stricli would use the next word as the value. */
function flagWithoutValue(args: readonly string[]): string | undefined {
  return beforeDashes(args).find((word) => /^--[a-z][a-z-]*=$/i.test(word));
}

/** Forms that stricli does not support: -ojson, -o=json, --listen= without a value, and -v before the command. */
function normaliseArgs(args: readonly string[]): readonly string[] {
  const ours = beforeDashes(args);
  const rest = args.slice(ours.length);
  const leading = ours.findIndex((word) => word !== "-v" && word !== "--verbose");
  if (leading <= 0) return [...ours.flatMap(separated), ...rest];
  return [...ours.slice(leading).flatMap(separated), "-v", ...rest];
}

function separated(word: string): readonly string[] {
  const value = /^-o=?([a-z]+(?:-[a-z]+)*(?:=.*)?)$/s.exec(word)?.[1];
  if (value !== undefined) return ["-o", value];
  return word === `${MAY_BE_EMPTY}=` ? [MAY_BE_EMPTY, ""] : [word];
}

/** Words after `--` are not for unghost. */
function beforeDashes(args: readonly string[]): readonly string[] {
  const end = args.indexOf("--");
  return end < 0 ? args : args.slice(0, end);
}

function asksFor(args: readonly string[], ...words: readonly string[]): boolean {
  return beforeDashes(args).some((word) => words.includes(word));
}

/** Variables of the lab and the tests; unghost itself does not read them. */
const OTHERS = /^UNGHOST_(?:LAB_|BIN$|BENCH_|TEST_)/;

/** An unused variable is most likely a misspelt setting: one sentence each. */
function unknownVariables(env: Io["env"]): readonly string[] {
  const known = ["UNGHOST_CONFIG", ...Object.keys({ ...NODE, ...agentFlags }).map(environmentName)];
  const unread = Object.keys(env).filter(
    (name) => name.startsWith("UNGHOST_") && !OTHERS.test(name) && !known.includes(name),
  );
  return unread.map((name) => {
    const nearest = nearestOf(withoutPrefix(name), known.map(withoutPrefix));
    return `${name} is not a setting${nearest === undefined ? "" : `; did you mean UNGHOST_${nearest}?`}`;
  });
}

/** The common prefix would make all of them similar. */
function withoutPrefix(name: string): string {
  return name.slice("UNGHOST_".length);
}

/**
 * The error of a command line. stricli's own formatter finds its messages by class names, which the built executable
 * does not keep.
 */
function argumentMistake(thrown: unknown, flags: readonly string[]): string {
  if (thrown instanceof FlagNotFoundError) {
    const nearest = nearestOf(kebab(thrown.input), flags.map(kebab));
    return `unknown flag --${thrown.input}${nearest === undefined ? "" : `, did you mean --${nearest}?`}`;
  }
  if (thrown instanceof AliasNotFoundError) return `unknown flag -${thrown.input}`;
  if (thrown instanceof UnsatisfiedFlagError) {
    return `--${kebab(thrown.externalFlagName)} has no value: give one, or leave the flag out`;
  }
  if (thrown instanceof UnexpectedFlagError) {
    return `--${kebab(thrown.externalFlagName)} is given twice (${thrown.previousInput} and ${thrown.input}): give it once`;
  }
  if (thrown instanceof UnexpectedPositionalError) return `unexpected argument "${thrown.input}"`;
  if (thrown instanceof UnsatisfiedPositionalError) return `${thrown.placeholder} is missing`;
  if (thrown instanceof ArgumentParseError) {
    const { externalFlagNameOrPlaceholder: name, exception } = thrown;
    const place = flags.some((flag) => kebab(flag) === kebab(name)) ? `--${kebab(name)}` : name;
    return `${place}: ${sentenceOf(exception, thrown.input)}`;
  }
  return sentenceOf(thrown, "");
}

function sentenceOf(thrown: unknown, input: string): string {
  // From stricli's parser of booleans, the only parser that is not ours.
  if (thrown instanceof SyntaxError) return `expected true or false, got "${input}"`;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
