import { printable } from "../host/printable.ts";
import { ExitCode } from "./exit-codes.ts";
import { SettingsError } from "./settings-error.ts";

/** What a command says when it threw: one sentence with the next step. Where it happened is for those who asked. */
export function failureSentence(thrown: unknown, verbose: boolean): string {
  const message = printable(thrown instanceof Error ? thrown.message : String(thrown));
  if (thrown instanceof SettingsError) return `unghost: ${message}`;
  if (verbose && thrown instanceof Error) return `unghost: unexpected: ${thrown.stack ?? message}`;
  const asked = verbose ? "" : " Run it again with -v and report what it prints.";
  return `unghost: unexpected: ${message}.${asked}`;
}

/** A wrong setting is wrong usage; whatever else was thrown means that we could not look. */
export function failureCode(thrown: unknown): ExitCode {
  return thrown instanceof SettingsError ? ExitCode.usage : ExitCode.unknown;
}
