import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { resolveOnHost } from "../snapshot/host-paths.ts";
import { parseJson, property } from "../snapshot/json.ts";
import { doubtOfPlugins } from "./plugin-owner.ts";

export interface CniCall {
  readonly plugin: string;
  /** The network configuration, as a plugin reads it from its standard input. */
  readonly config: object;
}

export interface CniDelCall extends CniCall {
  readonly containerId: string;
  readonly interfaceName: string;
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
export async function cniDel(call: CniDelCall, place: CniPlace): Promise<CniFailure> {
  const { containerId, interfaceName } = call;
  const attachment = { CNI_CONTAINERID: containerId, CNI_IFNAME: interfaceName, CNI_NETNS: "" };
  const answer = await execute(call, { CNI_COMMAND: "DEL", ...attachment }, place);
  return answer.ok ? undefined : answer.words;
}

/** Calls one plugin for GC, which concerns a whole network: there is no container, interface or namespace to name. */
export async function cniGc(call: CniCall, place: CniPlace): Promise<CniFailure> {
  const answer = await execute(call, { CNI_COMMAND: "GC" }, place);
  return answer.ok ? undefined : answer.words;
}

/** The versions of CNI that a plugin says it supports; none where it is missing or older than the question. */
export async function cniVersions(plugin: string, place: CniPlace): Promise<readonly string[]> {
  const answer = await execute({ plugin, config: { cniVersion: "1.1.0" } }, { CNI_COMMAND: "VERSION" }, place);
  const supported = answer.ok ? property(parseJson(answer.words), "supportedVersions") : [];
  return Array.isArray(supported) ? supported.filter((version) => typeof version === "string") : [];
}

interface Answer {
  readonly ok: boolean;
  /** What the plugin printed, or why it could not be called. */
  readonly words: string;
}

async function execute(
  { plugin, config }: CniCall,
  parameters: Readonly<Record<string, string>>,
  { hostRoot, binDirs, timeoutMs }: CniPlace,
): Promise<Answer> {
  const dir = binDirs.find((one) => existsSync(resolveOnHost(hostRoot, join(one, plugin), "follow")));
  if (dir === undefined) return { ok: false, words: `no ${plugin} in ${binDirs.join(", ")}` };
  const doubt = doubtOfPlugins(hostRoot, binDirs);
  if (doubt !== undefined) return { ok: false, words: doubt };
  const binary = join(dir, plugin);
  // In a container the plugin must see the host's files under their own names.
  const [command, ...args] = hostRoot === "/" ? [binary] : ["chroot", hostRoot, binary];
  const env = { ...parameters, CNI_PATH: binDirs.join(":"), PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
  return await new Promise((resolve) => {
    const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "ignore"], timeout: timeoutMs });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      if (output.length < MAX_OUTPUT_BYTES) output += chunk.toString("utf8");
    });
    child.on("error", (error) => resolve({ ok: false, words: `${binary} could not be started: ${error.message}` }));
    child.on("close", (code, signal) => {
      if (code === 0) resolve({ ok: true, words: output });
      else resolve({ ok: false, words: output.trim() || `${binary} ended with ${signal ?? `code ${code}`}` });
    });
    // A plugin that ends without reading its configuration has said no, and its exit code tells.
    child.stdin.on("error", () => undefined);
    child.stdin.end(JSON.stringify(config));
  });
}
