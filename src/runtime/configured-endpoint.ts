import { readFileSync } from "node:fs";
import { join } from "node:path";

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
  const own = ownCrictl ? [{ file: ownCrictl, key: "runtime-endpoint", inHost: false } as const] : [];
  for (const { file, key, inHost } of [...own, ...FILES.map((one) => ({ ...one, inHost: true }))]) {
    const text = settingIn(inHost ? join(hostRoot, file) : file, key);
    if (!text) continue;
    const doubt = doubtOf(file, inHost);
    return doubt === undefined ? { text, by: file, inHost } : { by: file, doubt };
  }
  return undefined;
}

/** kubeadm writes kubelet's flags into a separate file; kubelet's configuration file has the endpoint since 1.27. */
const FILES = [
  { file: "/etc/crictl.yaml", key: "runtime-endpoint" },
  { file: "/var/lib/kubelet/kubeadm-flags.env", key: "--container-runtime-endpoint" },
  { file: "/var/lib/kubelet/config.yaml", key: "containerRuntimeEndpoint" },
] as const;

type EndpointKey = (typeof FILES)[number]["key"];

const PATTERNS: Readonly<Record<EndpointKey, RegExp>> = {
  "runtime-endpoint": /^[ \t]*runtime-endpoint:[ \t]*["']?([^"'#\s]+)/m,
  "--container-runtime-endpoint": /--container-runtime-endpoint[= ]["']?([^"'\s]+)/,
  containerRuntimeEndpoint: /^containerRuntimeEndpoint:[ \t]*["']?([^"'#\s]+)/m,
};

/** A regular expression, because loading a YAML parser would take longer than everything else before the first call. */
export function settingIn(file: string, key: EndpointKey): string | undefined {
  try {
    return PATTERNS[key].exec(readFileSync(file, "utf8"))?.[1];
  } catch {
    // Missing or unreadable: the next file is tried.
    return undefined;
  }
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
