import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { resolveOnHost } from "../snapshot/host-paths.ts";

export interface CniCall {
  readonly plugin: string;
  readonly containerId: string;
  readonly interfaceName: string;
  /** The network configuration, as a plugin reads it from its standard input. */
  readonly config: object;
}

export interface CniPlace {
  readonly hostRoot: string;
  readonly binDirs: readonly string[];
  readonly timeoutMs: number;
}

/** undefined when the plugin says that it succeeded, else its words. */
export type CniFailure = string | undefined;

const MAX_OUTPUT_BYTES = 64 * 1024;

/** Calls one plugin for DEL with an empty network namespace, as a runtime does for a sandbox whose namespace is gone. */
export async function cniDel(call: CniCall, place: CniPlace): Promise<CniFailure> {
  const dir = place.binDirs.find((one) => existsSync(resolveOnHost(place.hostRoot, join(one, call.plugin), "follow")));
  if (dir === undefined) return `no ${call.plugin} in ${place.binDirs.join(", ")}`;
  const binary = join(dir, call.plugin);
  // In a container the plugin must see the host's files under their own names.
  const [command, ...args] = place.hostRoot === "/" ? [binary] : ["chroot", place.hostRoot, binary];
  const env = {
    CNI_COMMAND: "DEL",
    CNI_CONTAINERID: call.containerId,
    CNI_IFNAME: call.interfaceName,
    CNI_NETNS: "",
    CNI_PATH: place.binDirs.join(":"),
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  };
  return await new Promise((resolve) => {
    const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "ignore"], timeout: place.timeoutMs });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      if (output.length < MAX_OUTPUT_BYTES) output += chunk.toString("utf8");
    });
    child.on("error", (error) => resolve(`${binary} could not be started: ${error.message}`));
    child.on("close", (code, signal) => {
      resolve(code === 0 ? undefined : output.trim() || `${binary} ended with ${signal ?? `code ${code}`}`);
    });
    // A plugin that ends without reading its configuration has said no, and its exit code tells.
    child.stdin.on("error", () => undefined);
    child.stdin.end(JSON.stringify(call.config));
  });
}
