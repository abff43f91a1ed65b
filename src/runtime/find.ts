import type { Stats } from "node:fs";
import { join } from "node:path";
import { NODE_DIRS, SOCKETS } from "../host/distributions.ts";
import { existsSync, statSync } from "../host/guarded-fs.ts";
import { resolveOnHost } from "../host/paths.ts";
import { fileText, readRegularFile } from "../host/safe-fs.ts";
import { errorCode } from "../host/source.ts";
import { answersCri } from "./cri.ts";

export interface FindOptions extends EndpointSources {
  readonly timeoutMs: number;
  /** The endpoint of the running kubelet; called only if several runtimes answer. */
  readonly runningKubelet: () => Promise<KubeletsEndpoint>;
}

export interface KubeletsEndpoint {
  readonly endpoint: ConfiguredEndpoint | undefined;
  /** Processes named kubelet that are not proven to be one, with the reason. */
  readonly notBelieved: readonly string[];
}

export type Found =
  | { readonly kind: "found"; readonly path: string; readonly reason: string }
  | { readonly kind: "none"; readonly message: string; readonly next: string }
  /** A user other than root owns the socket, the file that names it, or a parent directory. */
  | { readonly kind: "refused"; readonly message: string; readonly next: string }
  | { readonly kind: "ambiguous"; readonly paths: readonly string[]; readonly message: string; readonly next: string };

/**
 * Finds the runtime without configuration. A configured endpoint takes precedence and no other is tried, but a socket
 * that a user other than root could have created or replaced is refused in any case.
 */
export async function findRuntime(options: FindOptions): Promise<Found> {
  const configured = configuredEndpoint(options);
  if (configured === undefined) return await probe(options);
  if ("doubt" in configured) return refusing(`the endpoint in ${configured.by}`, configured.doubt);
  return useConfigured(configured, options);
}

function useConfigured(configured: ConfiguredEndpoint, { hostRoot, doubtOf }: FindOptions): Found {
  const parsed = parseEndpoint(configured.text);
  if (!parsed.ok)
    return { kind: "none", message: `${configured.by}: ${parsed.message}`, next: "Correct it and scan again." };
  const doubt = doubtOf(parsed.path, configured.inHost);
  if (doubt !== undefined) return refusing(`the runtime socket ${parsed.path} (${configured.by})`, doubt);
  return {
    kind: "found",
    path: configured.inHost ? onHost(hostRoot, parsed.path) : parsed.path,
    reason: configured.by,
  };
}

function refusing(what: string, { detail, next }: Doubt): Found {
  return { kind: "refused", message: `${what} is not used: ${detail}`, next };
}

/**
 * /var/run is a link to /run on every node; resolved inside a container it would lead to the container's own directory.
 */
function onHost(hostRoot: string, path: string): string {
  return hostRoot === "/" ? path : join(hostRoot, path.replace(/^\/var\/run\//, "/run/"));
}

const NAME_ONE = "name its socket with --runtime-endpoint.";

const NO_NODE =
  "No kubelet was installed here either. On a laptop run unghost fleet scan, which reads the cluster of your kubeconfig; for one node run unghost on it, or name a socket with --runtime-endpoint.";

/** A kubelet or a pod network was installed here. */
function isNode(hostRoot: string): boolean {
  return NODE_DIRS.some((path) => existsSync(onHost(hostRoot, path)));
}

async function probe(options: FindOptions): Promise<Found> {
  const { timeoutMs } = options;
  const { places, present, hidden, doubts } = findSockets(options);
  const [first] = present;
  const [doubted] = doubts;
  if (first === undefined && doubted !== undefined) {
    return refusing(`the runtime socket ${doubted.path}`, doubted.doubt);
  }
  if (first === undefined && hidden.length > 0) {
    const message = `no container runtime found: no permission to search for a socket at ${hidden.join(", ")}`;
    return { kind: "none", message, next: "Run unghost as root." };
  }
  if (first === undefined) {
    const message = `no container runtime found: no socket at ${places.join(", ")}`;
    return { kind: "none", message, next: isNode(options.hostRoot) ? `Start the runtime, or ${NAME_ONE}` : NO_NODE };
  }
  if (present.length === 1) return { kind: "found", path: first, reason: "the only runtime socket here" };

  const answers = await Promise.all(
    present.map((path) => answersCri(path, { timeoutMs: Math.min(timeoutMs, LONGEST_PROBE_MS) })),
  );
  const answering = present.filter((_, index) => answers[index]);
  const [only] = answering;
  if (only === undefined) {
    const message = `no container runtime answers: tried ${present.join(", ")}`;
    return { kind: "none", message, next: `Check the runtime's service and log, or ${NAME_ONE}` };
  }
  if (answering.length === 1) return { kind: "found", path: only, reason: "the only runtime that answers here" };
  const { endpoint, notBelieved } = await options.runningKubelet();
  if (endpoint !== undefined) return useConfigured(endpoint, options);
  const impostors = notBelieved.length === 0 ? "" : ` (not believed: ${notBelieved.join("; ")})`;
  return {
    kind: "ambiguous",
    paths: answering,
    message: `${answering.length} container runtimes answer and no kubelet names the one it uses${impostors}: ${answering.join(", ")}`,
    next: "Name one with --runtime-endpoint.",
  };
}

/** Two paths may lead to one socket, because k3s' socket is often linked to the default path. */
function findSockets({ hostRoot, doubtOf }: FindOptions) {
  const places: string[] = [];
  const present = new Map<string, string>();
  const hidden: string[] = [];
  const doubts: { readonly path: string; readonly doubt: Doubt }[] = [];
  for (const socket of SOCKETS) {
    const path = join(hostRoot, socket);
    places.push(path);
    const seen = statSocket(path);
    if (seen === "missing") continue;
    const doubt = seen === "hidden" ? undefined : doubtOf(socket, true);
    if (seen === "hidden") hidden.push(path);
    else if (doubt !== undefined) doubts.push({ path, doubt });
    else {
      const identity = `${seen.dev}:${seen.ino}`;
      if (!present.has(identity)) present.set(identity, path);
    }
  }
  return { places, present: [...present.values()], hidden, doubts };
}

function statSocket(path: string): Stats | "missing" | "hidden" {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? "missing";
  } catch (error) {
    const code = errorCode(error);
    return code === "EACCES" || code === "EPERM" ? "hidden" : "missing";
  }
}

/** A probe must not use up the timeout of the scan. */
const LONGEST_PROBE_MS = 2000;

/** A configured endpoint and its source. */
export interface ConfiguredEndpoint {
  readonly text: string;
  readonly by: string;
  /** Whether the path is a path of the host, which may be mounted elsewhere (`--host-root`). */
  readonly inHost: boolean;
}

/** Why users other than root may change a path, and how to fix that. */
export interface Doubt {
  readonly detail: string;
  readonly next: string;
}

/** An endpoint in a file that users other than root may change. */
interface DoubtedEndpoint {
  readonly by: string;
  readonly doubt: Doubt;
}

export interface EndpointSources {
  /** `--runtime-endpoint`, or the same setting in the environment or the configuration file. */
  readonly endpoint: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostRoot: string;
  /** Whether a user other than root could have created or replaced the target of a path. */
  readonly doubtOf: (path: string, inHost: boolean) => Doubt | undefined;
}

/** The endpoint that is configured for unghost, crictl or kubelet; the first one counts. */
export function configuredEndpoint({
  endpoint,
  env,
  hostRoot,
  doubtOf,
}: EndpointSources): ConfiguredEndpoint | DoubtedEndpoint | undefined {
  if (endpoint) return { text: endpoint, by: "--runtime-endpoint", inHost: false };
  const fromEnv = env["CONTAINER_RUNTIME_ENDPOINT"];
  if (fromEnv) return { text: fromEnv, by: "CONTAINER_RUNTIME_ENDPOINT", inHost: false };
  const ownCrictl = env["CRI_CONFIG_FILE"];
  const own = ownCrictl ? [{ file: ownCrictl, pattern: IN_CRICTL_CONFIG, inHost: false }] : [];
  for (const { file, pattern, inHost } of [...own, ...FILES.map((one) => ({ ...one, inHost: true }))]) {
    const read = readConfig(resolveOnHost(inHost ? hostRoot : "/", file, "follow"), () => doubtOf(file, inHost));
    if ("doubt" in read) return { by: file, doubt: read.doubt };
    const text = pattern.exec(read.text)?.[1];
    if (text) return { text, by: file, inHost };
  }
  return undefined;
}

// Regular expressions, because loading a YAML parser would take longer than everything else before the first call.
const IN_CRICTL_CONFIG = /^[ \t]*runtime-endpoint:[ \t]*["']?([^"'#\s]+)/m;
const IN_KUBEADM_FLAGS = /--container-runtime-endpoint[= ]["']?([^"'\s]+)/;
export const IN_KUBELET_CONFIG = /^containerRuntimeEndpoint:[ \t]*["']?([^"'#\s]+)/m;

/** kubeadm writes kubelet's flags into a separate file; kubelet's configuration file has the endpoint since 1.27. */
const FILES = [
  { file: "/etc/crictl.yaml", pattern: IN_CRICTL_CONFIG },
  { file: "/var/lib/kubelet/kubeadm-flags.env", pattern: IN_KUBEADM_FLAGS },
  { file: "/var/lib/kubelet/config.yaml", pattern: IN_KUBELET_CONFIG },
];

/** Such files have a few lines. */
const MAX_CONFIG_BYTES = 256 * 1024;

/** The owner comes first: another user's file is not opened, because it may never end, or change what is asked. */
function readConfig(
  path: string,
  doubtOf: () => Doubt | undefined,
): { readonly text: string } | { readonly doubt: Doubt } {
  if (!existsSync(path)) return { text: "" };
  const doubt = doubtOf();
  if (doubt !== undefined) return { doubt };
  const file = readRegularFile(path, MAX_CONFIG_BYTES);
  if (file.kind === "content") return { text: file.text };
  const isOdd = file.kind === "notRegular" || (file.kind === "closed" && file.size > MAX_CONFIG_BYTES);
  // A file that may not be read is no configuration for us.
  if (!isOdd) return { text: "" };
  return {
    doubt: { detail: `it ${file.reason}`, next: "Correct or remove it, or name the socket with --runtime-endpoint." },
  };
}

/** Undefined if the file is missing or unreadable, or has no such setting. */
export function settingIn(file: string, pattern: RegExp): string | undefined {
  return pattern.exec(fileText(file, MAX_CONFIG_BYTES))?.[1];
}

/** A runtime endpoint as crictl and kubelet write it: `unix:///run/x.sock`, or just the path. */
type ParsedEndpoint = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly message: string };

export function parseEndpoint(text: string): ParsedEndpoint {
  const trimmed = text.trim();
  const path = trimmed.startsWith("unix:") ? trimmed.replace(/^unix:(\/\/)?/, "") : trimmed;
  if (path.startsWith("/")) return { ok: true, path };
  return {
    ok: false,
    message: `"${text}" is not a runtime endpoint that unghost can use: give a unix socket such as unix:///run/containerd/containerd.sock`,
  };
}
