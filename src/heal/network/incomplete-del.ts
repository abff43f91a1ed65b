import { existsSync } from "node:fs";
import { type Reason, reason } from "../../evidence/finding.ts";
import { hostPath } from "../../host/paths.ts";
import { property } from "../../host/text.ts";
import type { CachedNetwork } from "./cni-exec.ts";

/** For the report: the chain's DEL failed, so its plugins may have left more than the address. */
export function incompleteDel(network: CachedNetwork, failure: string, hostRoot: string): Reason {
  const interfaces = nodeInterfaces(network.result).filter((name) => isLeft(name, hostRoot));
  const plugins = network.plugins.map((plugin) => String(property(plugin, "type"))).join(", ");
  const left =
    interfaces.length === 0 ? "" : ` Still on the node: interface ${interfaces.join(", ")} (ip link delete NAME).`;
  return reason(
    "del-incomplete",
    `DEL of network ${network.name} failed, so what its plugins (${plugins}) set up may remain: ${failure}.${left}`,
  );
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
