import { basename } from "node:path";
import { type SaidEndpoint, settingIn } from "../runtime/said-endpoint.ts";
import { resolveOnHost } from "./host-paths.ts";
import { readProcFileWithin } from "./proc-fs.ts";
import { splitNul } from "./proc-parse.ts";
import { readProcessTable } from "./process-table.ts";
import { valueOr } from "./source.ts";

const MAX_ARGUMENT_BYTES = 128 * 1024;
const READ_MS = 500;

/** k3s runs kubelet inside itself, and unless told otherwise with the containerd that it starts. */
const EMBEDDED: Readonly<Record<string, string>> = {
  "k3s-server": "/run/k3s/containerd/containerd.sock",
  "k3s-agent": "/run/k3s/containerd/containerd.sock",
  kubelite: "/var/snap/microk8s/common/run/containerd.sock",
};

/** The endpoint of the kubelet that runs on this node, from its command line or the configuration file named there. */
export async function endpointOfRunningKubelet(root: string, signal: AbortSignal): Promise<SaidEndpoint | undefined> {
  const table = valueOr(await readProcessTable({ root, signal }), undefined);
  for (const { pid, comm } of table?.processes ?? []) {
    if (comm !== "kubelet" && !(comm in EMBEDDED)) continue;
    const path = resolveOnHost(root, `/proc/${pid}/cmdline`, "keep");
    const read = await readProcFileWithin(READ_MS, path, MAX_ARGUMENT_BYTES);
    if (read.kind !== "content") continue;
    const text = endpointIn(splitNul(read.text), root) ?? EMBEDDED[comm];
    if (text !== undefined) return { text, by: `${comm} (pid ${pid})`, inHost: true };
  }
  return undefined;
}

function endpointIn(argv: readonly string[], root: string): string | undefined {
  const flag = valueOf(argv, "container-runtime-endpoint");
  if (flag !== undefined) return flag;
  const config = basename(argv[0] ?? "") === "kubelet" ? valueOf(argv, "config") : undefined;
  return config === undefined
    ? undefined
    : settingIn(resolveOnHost(root, config, "follow"), "containerRuntimeEndpoint");
}

/** Go programs take `--flag=value`, `--flag value`, and both with one dash. */
function valueOf(argv: readonly string[], flag: string): string | undefined {
  for (const [index, argument] of argv.entries()) {
    const bare = argument.replace(/^--?/, "");
    if (bare === argument) continue;
    if (bare === flag) return argv[index + 1];
    if (bare.startsWith(`${flag}=`)) return bare.slice(flag.length + 1);
  }
  return undefined;
}
