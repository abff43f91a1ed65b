import { existsSync } from "node:fs";
import { hostPath } from "../../host/host-paths.ts";
import { property } from "../../host/json.ts";
import { type HealReason, healReasonInWords } from "../heal-reason.ts";
import type { StepResult } from "../steps/step-result.ts";
import type { CachedNetwork } from "./cni-exec.ts";

type Effect = NonNullable<Extract<StepResult, { kind: "done" }>["effect"]>;

/** For the report: the chain's DEL failed, so its plugins may have left more than the address. */
export function incompleteDel(network: CachedNetwork, failure: string, hostRoot: string): Effect {
  const interfaces = nodeInterfaces(network.result).filter((name) => isLeft(name, hostRoot));
  const plugins = network.plugins.map((plugin) => String(property(plugin, "type")));
  const reason: HealReason = { code: "del-incomplete", network: network.name, plugins, failure, interfaces };
  return { code: reason.code, words: healReasonInWords(reason) };
}

/** Interfaces of a CNI result on the node's side: the others have a namespace. */
function nodeInterfaces(result: unknown): readonly string[] {
  const listed = property(result, "interfaces");
  if (!Array.isArray(listed)) return [];
  return listed
    .filter((one) => (property(one, "sandbox") ?? "") === "")
    .map((one) => property(one, "name"))
    .filter((name): name is string => typeof name === "string" && /^[^/\s]{1,15}$/.test(name) && !/^\.+$/.test(name));
}

/** A bridge is shared with other pods: it stays on purpose. */
function isLeft(name: string, hostRoot: string): boolean {
  const dir = hostPath(hostRoot, `/sys/class/net/${name}`);
  return existsSync(dir) && !existsSync(`${dir}/bridge`);
}
