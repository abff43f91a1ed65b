import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { CNI_BIN_DIR } from "./cni-config.ts";
import type { LabNode } from "./node.ts";

export type CniCommand = "ADD" | "DEL";

const GATE_DIR = "/opt/cni/gate";

/**
 * Stands in front of a real plugin. For a pod that has an order here it runs that order first, and goes on to the plugin
 * unless the order ended the matter. Reads no input itself: that belongs to the plugin.
 */
const GATE_SCRIPT = `#!/bin/sh
pod="\${CNI_ARGS##*K8S_POD_NAME=}"
order="${GATE_DIR}/$CNI_COMMAND-\${pod%%;*}"
[ -z "$CNI_ARGS" ] || [ ! -e "$order" ] || . "$order"
exec "$0.real" "$@"
`;

/** Makes CNI do something else for one pod and one command. The order is a piece of shell. */
export async function orderAtGate(
  node: LabNode,
  command: CniCommand,
  podName: string,
  order: string,
  plugin = "bridge",
): Promise<void> {
  const binary = node.path(`${CNI_BIN_DIR}/${plugin}`);
  if (!existsSync(`${binary}.real`)) {
    await rename(binary, `${binary}.real`);
    await node.writeFile(`${CNI_BIN_DIR}/${plugin}`, GATE_SCRIPT, 0o755);
  }
  await node.writeFile(orderPath(command, podName), order);
}

export async function liftOrder(node: LabNode, command: CniCommand, podName: string): Promise<void> {
  await rm(node.path(orderPath(command, podName)), { force: true });
}

/** An order that fails the command the way a plugin does: an error object on stdout and a code. */
export function refusal(message: string): string {
  const error = JSON.stringify({ cniVersion: "1.0.0", code: 100, msg: message }).replaceAll("'", "'\\''");
  return `printf '%s' '${error}'; exit 1\n`;
}

function orderPath(command: CniCommand, podName: string): string {
  return `${GATE_DIR}/${command}-${podName}`;
}
