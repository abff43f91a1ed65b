import { hostPath, resolveOnHost } from "../host/host-paths.ts";
import { parseJson, property } from "../host/json.ts";
import { procText } from "../host/proc-fs.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { provePath } from "../host/trusted-path.ts";
import { findMultusDaemons } from "./multus-daemon.ts";
import type { ProcessTable } from "./process-table.ts";
import { processProver } from "./trusted-process.ts";
import type { MultusConfig } from "./types.ts";

const CONFIG_FILE = "/etc/cni/net.d/multus.d/daemon-config.json";
const MAX_BYTES = 1024 * 1024;

/**
 * Where the daemon of thick multus keeps its caches. Its own configuration overrides what the shim sends it. In
 * upstream's manifest that file is a ConfigMap that only the daemon's container sees, so it is read through the daemon,
 * which is proven by the socket that it holds; where none runs, from the node's disk.
 */
export function withDaemonConfig(root: string, multus: MultusConfig, table: ProcessTable | undefined): MultusConfig {
  if (!multus.thick || multus.socket === undefined) return multus;
  const cniDir = property(parseJson(configText(root, multus.socket, table)), "cniDir");
  return typeof cniDir === "string" && cniDir.startsWith("/") ? { ...multus, cniDir } : multus;
}

function configText(root: string, socket: string, table: ProcessTable | undefined): string {
  const candidates = (table?.processes ?? []).filter(({ comm }) => comm === "multus-daemon");
  const [daemon] = candidates.length === 0 ? [] : findMultusDaemons(root, candidates, processProver(root), [socket]);
  if (daemon !== undefined) {
    const dir = hostPath(root, `/proc/${daemon.pid}`);
    return textOf(resolveOnHost(`${dir}/root`, configPathIn(procText(`${dir}/cmdline`)), "follow"));
  }
  return provePath(root, CONFIG_FILE).kind === "trusted" ? textOf(resolveOnHost(root, CONFIG_FILE, "follow")) : "";
}

/** `-config FILE`, `-config=FILE`, and the same with two dashes. */
function configPathIn(cmdline: string): string {
  const words = cmdline.split("\0");
  const at = words.findIndex((word) => /^--?config(?:=|$)/.test(word));
  const path = words[at]?.includes("=") ? words[at].slice(words[at].indexOf("=") + 1) : words[at + 1];
  return at >= 0 && path?.startsWith("/") ? path : CONFIG_FILE;
}

function textOf(path: string): string {
  const file = readRegularFile(path, MAX_BYTES);
  return file.kind === "content" ? file.text : "";
}
