import { statSync } from "node:fs";
import { join } from "node:path";
import { runChild } from "../host/child.ts";
import { classifyFailure, type PluginFailure } from "./plugin-failure.ts";

export interface PluginRun {
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly config: string;
  readonly timeoutMs: number;
}

const MAX_OUTPUT_BYTES = 1024 * 1024;

export async function runPlugin({
  path,
  environment,
  config,
  timeoutMs,
}: PluginRun): Promise<PluginFailure | "succeeded"> {
  const { end, stdout, stderr } = await runChild([path], {
    env: { ...environment },
    input: config,
    timeoutMs,
    maxOutputBytes: MAX_OUTPUT_BYTES,
  });
  if (end.kind === "exited" && end.code === 0) return "succeeded";
  if (end.kind === "not-started") return { kind: "plugin-missing", words: `executing ${path}: ${end.error.message}` };
  const how =
    end.kind === "exited" ? `exit ${end.code}` : end.kind === "signalled" ? `signal ${end.signal}` : "timeout";
  return classifyFailure({ how, stdout, stderr });
}

/** Where the plugin is now: it may have been installed again, elsewhere. */
export function findPlugin(name: string, cniPath: string | undefined, known: string): string {
  const dirs = (cniPath ?? "").split(":").filter(Boolean);
  return dirs.map((dir) => join(dir, name)).find(isRegularFile) ?? known;
}

/** Through links, as libcni does it; any error means that it is not here. */
function isRegularFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    return false;
  }
}
