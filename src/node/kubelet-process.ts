import { basename } from "node:path";
import { EMBEDDED_KUBELETS, placesAt, SERVING_CERTIFICATES } from "../host/distributions.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { openFilesOf, parseListeningPorts, procLink, procText, splitNul } from "../host/proc.ts";
import { argumentsOf } from "../host/process-memory.ts";
import { fileText } from "../host/safe-fs.ts";
import { type Source, valueOr } from "../host/source.ts";
import { provePath } from "../host/trusted-path.ts";
import type { ServingCertificate } from "../kube/kubelet-pods.ts";
import { IN_KUBELET_CONFIG, type KubeletsEndpoint, settingIn } from "../runtime/find.ts";
import { type ProcessTable, readProcessTable } from "./process-table.ts";
import { type ProcessRefusal, processProver } from "./trusted-process.ts";

export interface RunningKubelet {
  readonly pid: number;
  readonly comm: string;
  readonly argv: readonly string[];
}

export interface Kubelets {
  /** Proven to be the node's own, including embedded ones; normally one. */
  readonly trusted: readonly RunningKubelet[];
  /** Processes with the same name. Any user can start one: none of their arguments is used. */
  readonly refused: readonly (Omit<RunningKubelet, "argv"> & { readonly refusal: ProcessRefusal })[];
}

/** By its name, which proves nothing. `k3s` without its launcher is one program for many commands. */
export function isKubeletName(comm: string, argv: readonly string[]): boolean {
  if (comm === "k3s") return argv[1] === "server" || argv[1] === "agent";
  return comm === "kubelet" || EMBEDDED_KUBELETS.has(comm);
}

/** Pass the process table if it was already read: reading it takes milliseconds on a full node. */
export async function runningKubelets(
  root: string,
  signal: AbortSignal,
  table: Promise<Source<ProcessTable>> = readProcessTable({ root, signal }),
): Promise<Kubelets> {
  const candidates = (valueOr(await table, undefined)?.processes ?? []).filter(
    ({ comm }) => comm === "kubelet" || EMBEDDED_KUBELETS.has(comm),
  );
  const trusted: Kubelets["trusted"][number][] = [];
  const refused: Kubelets["refused"][number][] = [];
  if (candidates.length === 0) return { trusted, refused };
  const prover = processProver(root);
  for (const { pid, comm } of candidates) {
    const refusal = prover.proveService(pid);
    if (refusal.kind === "refused") {
      refused.push({ pid, comm, refusal });
      continue;
    }
    const read = await argumentsOf(hostPath(root, `/proc/${pid}`), signal);
    const argv = read.kind === "content" ? splitNul(read.text) : [];
    // Proven again after its arguments were read: if the pid was reused, the new process has to pass the proof.
    if (isKubeletName(comm, argv) && prover.proveService(pid).kind === "trusted") trusted.push({ pid, comm, argv });
  }
  return { trusted, refused };
}

/** The endpoint of the kubelet that runs on this node, from its command line or the configuration file named there. */
export async function endpointOfRunningKubelet(root: string, signal: AbortSignal): Promise<KubeletsEndpoint> {
  const { trusted, refused } = await runningKubelets(root, signal);
  const notBelieved = refused.map(({ pid, comm, refusal }) => `${comm} (pid ${pid}) ${refusal.detail}`);
  for (const { pid, comm, argv } of trusted) {
    const text = endpointIn(argv, root) ?? EMBEDDED_KUBELETS.get(comm);
    if (text !== undefined) return { endpoint: { text, by: `${comm} (pid ${pid})`, inHost: true }, notBelieved };
  }
  return { endpoint: undefined, notBelieved };
}

function endpointIn(argv: readonly string[], root: string): string | undefined {
  const flag = flagOf(argv, "container-runtime-endpoint");
  if (flag !== undefined) return flag;
  const config = configOf(argv, root);
  return config === undefined ? undefined : settingIn(config, IN_KUBELET_CONFIG);
}

/**
 * The configuration file of a kubelet, if only root can change it. A program that embeds a kubelet uses that flag for
 * something else.
 */
export function configOf(argv: readonly string[], root: string): string | undefined {
  const config = basename(argv[0] ?? "") === "kubelet" ? flagOf(argv, "config") : undefined;
  if (config === undefined || provePath(root, config).kind !== "trusted") return undefined;
  return resolveOnHost(root, config, "follow");
}

/** Go programs accept `--flag=value`, `--flag value`, and both with one dash. */
export function flagOf(argv: readonly string[], flag: string): string | undefined {
  for (const [index, argument] of argv.entries()) {
    const bare = argument.replace(/^--?/, "");
    if (bare === argument) continue;
    if (bare === flag) return argv[index + 1];
    if (bare.startsWith(`${flag}=`)) return bare.slice(flag.length + 1);
  }
  return undefined;
}

/** The root directory from a kubelet's flags: its configuration file has no such field. */
export function rootDirOf({ argv }: Pick<RunningKubelet, "argv">): string | undefined {
  const configured = flagOf(argv, "root-dir") ?? embeddedRootDir(argv);
  return configured?.startsWith("/") ? configured.replace(/(?<=.)\/+$/, "") : undefined;
}

/** k3s and rke2 pass kubelet's flags on: `--kubelet-arg=root-dir=/data/kubelet`. */
function embeddedRootDir(argv: readonly string[]): string | undefined {
  const given = argv.flatMap((argument, index) => {
    const [, value] = /^--?kubelet-arg(?:=(.*))?$/s.exec(argument) ?? [];
    return /^--?kubelet-arg/.test(argument) ? [value ?? argv[index + 1] ?? ""] : [];
  });
  const rootDir = given.findLast((flag) => /^(?:--)?root-dir=/.test(flag));
  return rootDir?.slice(rootDir.indexOf("=") + 1);
}

/** The root directory of the running kubelet, else the distribution's default. */
export async function runningKubeletRoot(where: {
  readonly root: string;
  readonly runtimePath: string;
  readonly signal: AbortSignal;
  readonly table: Promise<Source<ProcessTable>>;
}): Promise<string> {
  const { trusted } = await runningKubelets(where.root, where.signal, where.table);
  return trusted.flatMap((kubelet) => rootDirOf(kubelet) ?? [])[0] ?? placesAt(where.runtimePath).kubeletRoot;
}

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
    if (urls.length === 0) continue;
    const kubeconfig = flagOf(kubelet.argv, "kubeconfig");
    return { urls, kubeconfig, serving: readServingCertificate(kubelet, root) };
  }
  return undefined;
}

function sharesOurNetwork(root: string, pid: number): boolean {
  const theirs = procLink(hostPath(root, `/proc/${pid}/ns/net`));
  return theirs !== undefined && theirs === procLink("/proc/self/ns/net");
}

function portOf({ argv }: RunningKubelet, root: string, flag: string, setting: string): number | undefined {
  const value = flagOf(argv, flag) ?? settingOf(configOf(argv, root), setting);
  return value === undefined ? undefined : Number(value);
}

function listeningPorts(root: string, pid: number): ReadonlySet<number> {
  const dir = hostPath(root, `/proc/${pid}`);
  const held = openFilesOf(dir);
  const tables = ["tcp", "tcp6"].flatMap((table) =>
    parseListeningPorts(procText(`${dir}/net/${table}`, MAX_SOCKETS_BYTES)),
  );
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
    const certificate = parse(fileText(resolveOnHost(root, place, "follow")));
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
  return new RegExp(`^\\s*"?${setting}"?:[ \\t]*["']?([^"'#,\\s]+)`, "m").exec(fileText(config))?.[1];
}
