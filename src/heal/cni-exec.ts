import { existsSync } from "node:fs";
import { join } from "node:path";
import { failureOf, runChild } from "../child/run-child.ts";
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
  /** `KEY=value;…`, as the runtime gave it on ADD: some plugins know a pod by nothing else. */
  readonly args?: string;
}

export interface CniPlace {
  readonly hostRoot: string;
  readonly binDirs: readonly string[];
  readonly timeoutMs: number;
}

/** undefined when the plugin says that it succeeded, else its words. */
export type CniFailure = string | undefined;

/** Calls one plugin for DEL with an empty network namespace, as a runtime does for a sandbox whose namespace is gone. */
export async function cniDel(call: CniDelCall, place: CniPlace): Promise<CniFailure> {
  const { containerId, interfaceName, args } = call;
  const attachment = {
    CNI_CONTAINERID: containerId,
    CNI_IFNAME: interfaceName,
    CNI_NETNS: "",
    ...(args === undefined ? {} : { CNI_ARGS: args }),
  };
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

/** As libcni (pkg/invoke, FindInPath): a name without separators, so that only what lies in the directories is executed. */
function isPluginName(type: string): boolean {
  return type !== "" && type !== "." && type !== ".." && !/[/\\\0]/.test(type);
}

async function execute(
  { plugin, config }: CniCall,
  parameters: Readonly<Record<string, string>>,
  { hostRoot, binDirs, timeoutMs }: CniPlace,
): Promise<Answer> {
  if (!isPluginName(plugin))
    return { ok: false, words: `${JSON.stringify(plugin)} is not a plugin's name: not executed` };
  const dir = binDirs.find((one) => existsSync(resolveOnHost(hostRoot, join(one, plugin), "follow")));
  if (dir === undefined) return { ok: false, words: `no ${plugin} in ${binDirs.join(", ")}` };
  const doubt = doubtOfPlugins(hostRoot, binDirs);
  if (doubt !== undefined) return { ok: false, words: doubt };
  const binary = join(dir, plugin);
  // In a container the plugin must see the host's files under their own names.
  const command = hostRoot === "/" ? [binary] : ["chroot", hostRoot, binary];
  const env = { ...parameters, CNI_PATH: binDirs.join(":"), PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
  const result = await runChild(command, { env, input: JSON.stringify(config), timeoutMs });
  const failure = failureOf(result);
  if (failure === undefined) return { ok: true, words: result.stdout };
  const isOwnFailure = result.end.kind === "exited" && result.stdout.trim() !== "";
  return { ok: false, words: isOwnFailure ? result.stdout.trim() : `${binary} ${failure}` };
}
