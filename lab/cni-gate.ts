import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { CNI_BIN_DIR } from "./cni-config.ts";
import type { LabNode } from "./node.ts";

export type CniCommand = "ADD" | "DEL";

const GATE_DIR = "/opt/cni/gate";

/**
 * A wrapper around a real plugin. For a pod with an order it runs that order first, and then the plugin, unless the
 * order exits. It does not read its input, which belongs to the plugin.
 */
const GATE_SCRIPT = `#!/bin/sh
pod="\${CNI_ARGS##*K8S_POD_NAME=}"
order="${GATE_DIR}/$CNI_COMMAND-\${pod%%;*}"
[ -e "$order" ] || order="${GATE_DIR}/$CNI_COMMAND-"
[ -z "$CNI_ARGS" ] || [ ! -e "$order" ] || . "$order"
exec "$0.real" "$@"
`;

/** For an order that holds for every pod without one of its own. */
export const EVERY_POD = "";

/** Overrides CNI for one pod and one command. The order is a shell script. */
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

/** An order that fails the command like a plugin: an error object on stdout and an exit code. */
export function refusal(message: string): string {
  const error = JSON.stringify({ cniVersion: "1.0.0", code: 100, msg: message }).replaceAll("'", "'\\''");
  return `printf '%s' '${error}'; exit 1\n`;
}

function orderPath(command: CniCommand, podName: string): string {
  return `${GATE_DIR}/${command}-${podName}`;
}
