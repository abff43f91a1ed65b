import { type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { SOCKETS } from "../host/distributions/index.ts";
import { errorCode } from "../host/source.ts";
import {
  type ConfiguredEndpoint,
  configuredEndpoint,
  type Doubt,
  type EndpointSources,
  parseEndpoint,
} from "./configured-endpoint.ts";
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
    return { kind: "none", message, next: `Start the runtime, or ${NAME_ONE}` };
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

interface Places {
  readonly places: readonly string[];
  readonly present: readonly string[];
  readonly hidden: readonly string[];
  readonly doubts: readonly { readonly path: string; readonly doubt: Doubt }[];
}

/** Two paths may lead to one socket, because k3s' socket is often linked to the default path. */
function findSockets({ hostRoot, doubtOf }: FindOptions): Places {
  const places: string[] = [];
  const present = new Map<string, string>();
  const hidden: string[] = [];
  const doubts: Places["doubts"][number][] = [];
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
