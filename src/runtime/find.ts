import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openCri } from "./cri.ts";
import { distributions } from "./distributions.ts";
import { parseEndpoint } from "./endpoint.ts";

export interface FindOptions {
  /** `--runtime-endpoint`, or its twin in the environment or the configuration file. */
  readonly endpoint: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostRoot: string;
  readonly timeoutMs: number;
}

export type Found =
  | { readonly kind: "found"; readonly path: string; readonly because: string }
  | { readonly kind: "none"; readonly message: string; readonly next: string }
  | { readonly kind: "ambiguous"; readonly paths: readonly string[]; readonly message: string; readonly next: string };

/** Finds the runtime without configuration. What is said explicitly wins and is never second-guessed. */
export async function findRuntime(options: FindOptions): Promise<Found> {
  const said = saidEndpoint(options);
  if (said !== undefined) {
    const parsed = parseEndpoint(said.text);
    if (parsed.ok)
      return { kind: "found", path: said.inHost ? join(options.hostRoot, parsed.path) : parsed.path, because: said.by };
    return { kind: "none", message: `${said.by}: ${parsed.message}`, next: "Correct it and scan again." };
  }
  return await probe(options);
}

interface Said {
  readonly text: string;
  readonly by: string;
  /** Whether the path is meant as seen by the host, which may be mounted elsewhere (`--host-root`). */
  readonly inHost: boolean;
}

function saidEndpoint({ endpoint, env, hostRoot }: FindOptions): Said | undefined {
  if (endpoint) return { text: endpoint, by: "--runtime-endpoint", inHost: false };
  const fromEnv = env["CONTAINER_RUNTIME_ENDPOINT"];
  if (fromEnv) return { text: fromEnv, by: "CONTAINER_RUNTIME_ENDPOINT", inHost: false };
  const crictl = settingIn(join(hostRoot, "/etc/crictl.yaml"), /^\s*runtime-endpoint:\s*["']?([^"'#\s]+)/m);
  if (crictl) return { text: crictl, by: "/etc/crictl.yaml", inHost: true };
  const kubelet = kubeletEndpoint(hostRoot);
  if (kubelet) return { text: kubelet.text, by: kubelet.by, inHost: true };
  return undefined;
}

/** What kubelet itself was told; kubeadm writes the first of these, the configuration file has it from 1.27 on. */
function kubeletEndpoint(hostRoot: string): { text: string; by: string } | undefined {
  const flags = "/var/lib/kubelet/kubeadm-flags.env";
  const fromFlags = settingIn(join(hostRoot, flags), /--container-runtime-endpoint[= ]["']?([^"'\s]+)/);
  if (fromFlags) return { text: fromFlags, by: flags };
  const config = "/var/lib/kubelet/config.yaml";
  const fromConfig = settingIn(join(hostRoot, config), /^containerRuntimeEndpoint:\s*["']?([^"'#\s]+)/m);
  return fromConfig ? { text: fromConfig, by: config } : undefined;
}

function settingIn(file: string, pattern: RegExp): string | undefined {
  try {
    return pattern.exec(readFileSync(file, "utf8"))?.[1];
  } catch {
    // No such file, or none that we may read: then it says nothing, and the next place is asked.
    return undefined;
  }
}

async function probe({ hostRoot, timeoutMs }: FindOptions): Promise<Found> {
  const places = distributions.flatMap((d) => d.sockets).map((socket) => join(hostRoot, socket));
  const present = places.filter((path) => existsSync(path));
  if (present.length === 0) {
    return {
      kind: "none",
      message: `no container runtime found: no socket at ${places.join(", ")}`,
      next: "Start the runtime, or name its socket with --runtime-endpoint.",
    };
  }
  if (present.length === 1)
    return { kind: "found", path: present[0] as string, because: "the only runtime socket here" };
  const answers = await Promise.all(present.map((path) => speaksCri(path, timeoutMs)));
  const answering = present.filter((_, index) => answers[index]);
  const only = answering[0];
  if (answering.length === 1 && only !== undefined) {
    return { kind: "found", path: only, because: "the only runtime that answers here" };
  }
  if (answering.length === 0) {
    return {
      kind: "none",
      message: `no container runtime answers: tried ${present.join(", ")}`,
      next: "Look at the runtime's service and log, or name its socket with --runtime-endpoint.",
    };
  }
  return {
    kind: "ambiguous",
    paths: answering,
    message: `${answering.length} container runtimes answer and no kubelet says which one is Kubernetes': ${answering.join(", ")}`,
    next: "Name one with --runtime-endpoint.",
  };
}

async function speaksCri(path: string, timeoutMs: number): Promise<boolean> {
  const cri = openCri(path);
  try {
    await cri.version({ timeoutMs: Math.min(timeoutMs, 2000) });
    return true;
  } catch {
    // Whatever the reason, this is not the runtime to ask: a containerd without its CRI plugin, a dead socket.
    return false;
  } finally {
    cri.close();
  }
}
