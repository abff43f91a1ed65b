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

export interface RunningKubelet {
  readonly pid: number;
  readonly comm: string;
  readonly argv: readonly string[];
}

/** The kubelets of this node, embedded ones too: one, as a rule. */
export async function runningKubelets(root: string, signal: AbortSignal): Promise<readonly RunningKubelet[]> {
  const table = valueOr(await readProcessTable({ root, signal }), undefined);
  const candidates = (table?.processes ?? []).filter(({ comm }) => comm === "kubelet" || comm in EMBEDDED);
  const kubelets = await Promise.all(
    candidates.map(async ({ pid, comm }) => {
      const path = resolveOnHost(root, `/proc/${pid}/cmdline`, "keep");
      const read = await readProcFileWithin(READ_MS, path, MAX_ARGUMENT_BYTES);
      return read.kind === "content" ? { pid, comm, argv: splitNul(read.text) } : undefined;
    }),
  );
  return kubelets.filter((kubelet) => kubelet !== undefined);
}

/** The endpoint of the kubelet that runs on this node, from its command line or the configuration file named there. */
export async function endpointOfRunningKubelet(root: string, signal: AbortSignal): Promise<SaidEndpoint | undefined> {
  for (const { pid, comm, argv } of await runningKubelets(root, signal)) {
    const text = endpointIn(argv, root) ?? EMBEDDED[comm];
    if (text !== undefined) return { text, by: `${comm} (pid ${pid})`, inHost: true };
  }
  return undefined;
}

function endpointIn(argv: readonly string[], root: string): string | undefined {
  const flag = flagOf(argv, "container-runtime-endpoint");
  if (flag !== undefined) return flag;
  const config = configOf(argv);
  return config === undefined
    ? undefined
    : settingIn(resolveOnHost(root, config, "follow"), "containerRuntimeEndpoint");
}

/** The configuration file that a kubelet was given. Whoever embeds one means something else by that flag. */
export function configOf(argv: readonly string[]): string | undefined {
  return basename(argv[0] ?? "") === "kubelet" ? flagOf(argv, "config") : undefined;
}

/** Go programs take `--flag=value`, `--flag value`, and both with one dash. */
export function flagOf(argv: readonly string[], flag: string): string | undefined {
  for (const [index, argument] of argv.entries()) {
    const bare = argument.replace(/^--?/, "");
    if (bare === argument) continue;
    if (bare === flag) return argv[index + 1];
    if (bare.startsWith(`${flag}=`)) return bare.slice(flag.length + 1);
  }
  return undefined;
}
