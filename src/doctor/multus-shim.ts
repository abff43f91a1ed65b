import { createHash } from "node:crypto";
import { posix } from "node:path";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { fileBytes } from "../host/safe-fs.ts";
import type { CniConfig, MultusDaemon } from "../node/types/cni.ts";
import type { Risk } from "./doctor-report.ts";

/** Where multus' image keeps the shim that its installer copies to the node. */
const SHIM_IN_IMAGE = "/usr/src/multus-cni/bin/multus-shim";
const MAX_PROGRAM_BYTES = 128 * 1024 * 1024;

/**
 * The shim on the node is not the one of the daemon's image: they have different versions. From 4.3.1 on the shim waits
 * for an answer that an older daemon does not have, and every ADD times out.
 */
export function shimRisk(root: string, conf: CniConfig | undefined, daemon: MultusDaemon | undefined): readonly Risk[] {
  const pid = daemon?.process?.pid;
  if (conf?.multus?.thick !== true || pid === undefined) return [];
  const inImage = digestOf(hostPath(root, `/proc/${pid}/root${SHIM_IN_IMAGE}`));
  const installed = [...new Set([...conf.binDirs, conf.multus.binDir])]
    .map((dir) => posix.join(dir, "multus-shim"))
    .map((path) => ({ path, digest: digestOf(resolveOnHost(root, path, "follow")) }))
    .find(({ digest }) => digest !== undefined);
  if (inImage === undefined || installed === undefined || installed.digest === inImage) return [];
  return [
    {
      id: "multus shim and daemon",
      detail: `${installed.path} is not the shim of the image that the daemon (pid ${pid}) runs from: they are of different builds`,
      end: "Roll the DaemonSet out again, so that shim and daemon come from one image: kubectl -n kube-system rollout restart daemonset kube-multus-ds",
    },
  ];
}

function digestOf(path: string): string | undefined {
  const bytes = fileBytes(path, MAX_PROGRAM_BYTES);
  return bytes === undefined ? undefined : createHash("sha256").update(bytes).digest("hex");
}
