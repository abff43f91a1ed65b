import type { CommandContext } from "@stricli/core";
import type { ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";

export interface Context extends CommandContext {
  readonly io: Io;
  /** What the command decided; stricli's own codes never overlap with ours. */
  finish(code: ExitCode): void;
}
