import { hostPath } from "../host/host-paths.ts";
import { readProcFile, readProcLink } from "../host/proc-fs.ts";
import { listDirectory } from "../host/safe-fs.ts";
import type { ServingCertificate } from "../kube/kubelet-pods.ts";
import { configOf, flagOf, type RunningKubelet, runningKubelets } from "./kubelet-process.ts";
import { readServingCertificate, settingOf } from "./kubelet-serving.ts";
import { parseListeningPorts } from "./proc-parse.ts";

/** Where the kubelet of this node answers on loopback. */
export interface KubeletServer {
  /** The port that anybody may read from, where it is on, comes first. */
  readonly urls: readonly URL[];
  /** The kubeconfig that it was started with. */
  readonly kubeconfig?: string;
  readonly serving?: ServingCertificate;
}

const SECURE_PORT = 10250;
const READ_ONLY_PORT = 10255;
const MAX_SOCKETS_BYTES = 4 * 1024 * 1024;

/**
 * Only ports on which that very process listens: any user may take a free one, and would be shown credentials or
 * believed. None where the kubelet lives in another network, as seen from a pod of its own.
 */
export async function findKubeletServer(root: string, signal: AbortSignal): Promise<KubeletServer | undefined> {
  for (const kubelet of (await runningKubelets(root, signal)).trusted) {
    if (!sharesOurNetwork(root, kubelet.pid)) continue;
    const open = listeningPorts(root, kubelet.pid);
    const wanted = [
      { port: portOf(kubelet, root, "read-only-port", "readOnlyPort") ?? READ_ONLY_PORT, scheme: "http" },
      { port: portOf(kubelet, root, "port", "port") ?? SECURE_PORT, scheme: "https" },
    ];
    const urls = wanted
      .filter(({ port }) => open.has(port))
      .map(({ port, scheme }) => new URL(`${scheme}://127.0.0.1:${port}`));
    const kubeconfig = flagOf(kubelet.argv, "kubeconfig");
    if (urls.length === 0) continue;
    const serving = readServingCertificate(kubelet, root);
    return { urls, ...(kubeconfig === undefined ? {} : { kubeconfig }), ...(serving === undefined ? {} : { serving }) };
  }
  return undefined;
}

function sharesOurNetwork(root: string, pid: number): boolean {
  const theirs = readProcLink(hostPath(root, `/proc/${pid}/ns/net`));
  const ours = readProcLink("/proc/self/ns/net");
  return theirs.kind === "content" && ours.kind === "content" && theirs.text === ours.text;
}

function portOf({ argv }: RunningKubelet, root: string, flag: string, setting: string): number | undefined {
  const value = flagOf(argv, flag) ?? settingOf(configOf(argv, root), setting);
  return value === undefined ? undefined : Number(value);
}

function listeningPorts(root: string, pid: number): ReadonlySet<number> {
  const listing = listDirectory(hostPath(root, `/proc/${pid}/fd`));
  if (listing.kind !== "listed") return new Set();
  const held = new Set(
    listing.entries.flatMap(({ name }) => {
      const link = readProcLink(hostPath(root, `/proc/${pid}/fd/${name}`));
      return link.kind === "content" ? link.text : [];
    }),
  );
  const tables = ["tcp", "tcp6"].flatMap((table) => {
    const read = readProcFile(hostPath(root, `/proc/${pid}/net/${table}`), MAX_SOCKETS_BYTES);
    return read.kind === "content" ? parseListeningPorts(read.text) : [];
  });
  return new Set(tables.filter(({ inode }) => held.has(`socket:[${inode}]`)).map(({ port }) => port));
}
