import { appendFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { statsOf } from "../host/safe-fs.ts";
import type { AttachmentKey } from "./state-files.ts";

const MAX_BYTES = 1024 * 1024;

export interface LogLine extends AttachmentKey {
  readonly code: string;
  /** What follows for the runtime. */
  readonly did: string;
  readonly pod?: string;
  readonly words?: string;
  /** What was wrong with the record: missing, unreadable, or not parsable. */
  readonly record?: string;
}

/** One line a decision. The newest megabyte is kept, and the one before. A log that cannot be written stops nothing. */
export function logDecision(stateDir: string, line: LogLine): void {
  const path = join(stateDir, "log");
  try {
    if ((statsOf(path)?.size ?? 0) > MAX_BYTES) renameSync(path, `${path}.1`);
    appendFileSync(path, `${JSON.stringify({ time: new Date().toISOString(), ...line })}\n`, { mode: 0o600 });
  } catch (error) {
    process.stderr.write(`unghost CNI guard: ${path} could not be written: ${String(error)}\n`);
  }
}

/** From CNI_ARGS, as the runtimes give them. */
export function podOfArgs(args: string | undefined): string | undefined {
  const values = new Map((args ?? "").split(";").map((pair) => [pair.split("=")[0] ?? "", pair.split("=")[1] ?? ""]));
  const name = values.get("K8S_POD_NAME");
  return name === undefined ? undefined : `${values.get("K8S_POD_NAMESPACE") ?? ""}/${name}`;
}
