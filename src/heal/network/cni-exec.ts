import { existsSync } from "node:fs";
import { join } from "node:path";
import { failureOf, runChild } from "../../child/run-child.ts";
import { onHostCommand } from "../../child/system-call.ts";
import { resolveOnHost } from "../../host/host-paths.ts";
import { doubtOfPlugins } from "./plugin-owner.ts";

export interface CniDelCall {
  readonly plugin: string;
  /** The network configuration, as a plugin reads it from its standard input. */
  readonly config: object;
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
export async function cniDel(call: CniDelCall, { hostRoot, binDirs, timeoutMs }: CniPlace): Promise<CniFailure> {
  const { plugin, config, containerId, interfaceName, args } = call;
  if (!isPluginName(plugin)) return `${JSON.stringify(plugin)} is not a plugin's name: not executed`;
  const dir = binDirs.find((one) => existsSync(resolveOnHost(hostRoot, join(one, plugin), "follow")));
  if (dir === undefined) return `no ${plugin} in ${binDirs.join(", ")}`;
  const doubt = doubtOfPlugins(hostRoot, binDirs);
  if (doubt !== undefined) return doubt;
  const binary = join(dir, plugin);
  // In a container the plugin must see the host's files under their own names.
  const command = hostRoot === "/" ? [binary] : onHostCommand(hostRoot, [binary]);
  const env = {
    CNI_COMMAND: "DEL",
    CNI_CONTAINERID: containerId,
    CNI_IFNAME: interfaceName,
    CNI_NETNS: "",
    ...(args === undefined ? {} : { CNI_ARGS: args }),
    CNI_PATH: binDirs.join(":"),
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  };
  const result = await runChild(command, { env, input: JSON.stringify(config), timeoutMs });
  const failure = failureOf(result);
  if (failure === undefined) return undefined;
  const isOwnFailure = result.end.kind === "exited" && result.stdout.trim() !== "";
  return isOwnFailure ? result.stdout.trim() : `${binary} ${failure}`;
}

/** As libcni (pkg/invoke, FindInPath): a name without separators, so that only what lies in the directories is executed. */
function isPluginName(type: string): boolean {
  return type !== "" && type !== "." && type !== ".." && !/[/\\\0]/.test(type);
}
