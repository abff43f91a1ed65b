import { SERVING_CERTIFICATES } from "../host/distributions/index.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { parseListeningPorts, readProcFile, readProcLink } from "../host/proc.ts";
import { listDirectory, readRegularFile } from "../host/safe-fs.ts";
import { provePath } from "../host/trusted-path.ts";
import type { ServingCertificate } from "../kube/kubelet-pods.ts";
import { configOf, flagOf, type RunningKubelet, runningKubelets } from "./kubelet-process.ts";

/** The kubelet's address on loopback. */
interface KubeletServer {
  /** The read-only port comes first, if it is enabled. */
  readonly urls: readonly URL[];
  /** The kubeconfig that it was started with. */
  readonly kubeconfig?: string;
  readonly serving?: ServingCertificate;
}

const SECURE_PORT = 10250;
const READ_ONLY_PORT = 10255;
const MAX_SOCKETS_BYTES = 4 * 1024 * 1024;

/**
 * Only ports on which that process listens: any user may listen on a free one, and would get credentials or be trusted.
 * None if the kubelet is in another network namespace.
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
    return { urls, kubeconfig, serving };
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

const DEFAULT_CERT_DIR = "/var/lib/kubelet/pki";
/** Signed by the cluster (serverTLSBootstrap), and self-signed. */
const IN_CERT_DIR = ["kubelet-server-current.pem", "kubelet.crt"];

/** The kubelet's serving certificate on disk, from files that only root can have written. */
function readServingCertificate(kubelet: RunningKubelet, root: string): ServingCertificate | undefined {
  const { argv } = kubelet;
  const named = flagOf(argv, "tls-cert-file") ?? settingOf(configOf(argv, root), "tlsCertFile");
  const certDir = flagOf(argv, "cert-dir") ?? DEFAULT_CERT_DIR;
  const places =
    named === undefined ? [...IN_CERT_DIR.map((name) => `${certDir}/${name}`), ...SERVING_CERTIFICATES] : [named];
  for (const place of places) {
    if (provePath(root, place).kind !== "trusted") continue;
    const file = readRegularFile(resolveOnHost(root, place, "follow"));
    const certificate = file.kind === "content" ? parse(file.text) : undefined;
    if (certificate !== undefined) return certificate;
  }
  return undefined;
}

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The file may also contain the key, which is not read. */
function parse(text: string): ServingCertificate | undefined {
  const [leaf, ...others] = text.match(CERTIFICATES) ?? [];
  if (leaf === undefined) return undefined;
  const name = nameIn(leaf);
  return { pem: [leaf, ...others].join("\n"), name };
}

function nameIn(leaf: string): string | undefined {
  try {
    const { X509Certificate } = process.getBuiltinModule("node:crypto");
    return /DNS:([^,\s]+)/.exec(new X509Certificate(leaf).subjectAltName ?? "")?.[1];
  } catch {
    // Not a certificate: the verification against it will fail.
    return undefined;
  }
}

/** A string at the top level of the file, in YAML or in JSON with one setting per line. */
function settingOf(config: string | undefined, setting: string): string | undefined {
  if (config === undefined) return undefined;
  const file = readRegularFile(config);
  if (file.kind !== "content") return undefined;
  return new RegExp(`^\\s*"?${setting}"?:[ \\t]*["']?([^"'#,\\s]+)`, "m").exec(file.text)?.[1];
}
