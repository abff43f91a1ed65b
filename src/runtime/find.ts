import { type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { openCri } from "./cri.ts";
import { distributions } from "./distributions.ts";
import { parseEndpoint } from "./endpoint.ts";
import { type SaidEndpoint, type Sayings, saidEndpoint } from "./said-endpoint.ts";

export interface FindOptions extends Sayings {
  readonly timeoutMs: number;
  /** What the kubelet that runs here was started with; asked only when several runtimes answer. */
  readonly runningKubelet: () => Promise<SaidEndpoint | undefined>;
}

export type Found =
  | { readonly kind: "found"; readonly path: string; readonly because: string }
  | { readonly kind: "none"; readonly message: string; readonly next: string }
  | { readonly kind: "ambiguous"; readonly paths: readonly string[]; readonly message: string; readonly next: string };

/** Finds the runtime without configuration. What is said explicitly wins and is never second-guessed. */
export async function findRuntime(options: FindOptions): Promise<Found> {
  const said = saidEndpoint(options);
  return said === undefined ? await probe(options) : asSaid(said, options.hostRoot);
}

function asSaid(said: SaidEndpoint, hostRoot: string): Found {
  const parsed = parseEndpoint(said.text);
  if (!parsed.ok) return { kind: "none", message: `${said.by}: ${parsed.message}`, next: "Correct it and scan again." };
  return { kind: "found", path: said.inHost ? onHost(hostRoot, parsed.path) : parsed.path, because: said.by };
}

/** /var/run is a link to /run on every node; followed from a container it would lead into the container's own. */
function onHost(hostRoot: string, path: string): string {
  return hostRoot === "/" ? path : join(hostRoot, path.replace(/^\/var\/run\//, "/run/"));
}

const NAME_ONE = "name its socket with --runtime-endpoint.";

async function probe(options: FindOptions): Promise<Found> {
  const { hostRoot, timeoutMs } = options;
  const places = distributions.flatMap((d) => d.sockets).map((socket) => join(hostRoot, socket));
  const { present, hidden } = lookFor(places);
  const [first] = present;
  if (first === undefined && hidden.length > 0) {
    const message = `no container runtime found: no permission to look for a socket at ${hidden.join(", ")}`;
    return { kind: "none", message, next: "Run unghost as root." };
  }
  if (first === undefined) {
    const message = `no container runtime found: no socket at ${places.join(", ")}`;
    return { kind: "none", message, next: `Start the runtime, or ${NAME_ONE}` };
  }
  if (present.length === 1) return { kind: "found", path: first, because: "the only runtime socket here" };

  const answers = await Promise.all(present.map((path) => speaksCri(path, timeoutMs)));
  const answering = present.filter((_, index) => answers[index]);
  const [only] = answering;
  if (only === undefined) {
    const message = `no container runtime answers: tried ${present.join(", ")}`;
    return { kind: "none", message, next: `Look at the runtime's service and log, or ${NAME_ONE}` };
  }
  if (answering.length === 1) return { kind: "found", path: only, because: "the only runtime that answers here" };
  const kubelets = await options.runningKubelet();
  if (kubelets !== undefined) return asSaid(kubelets, hostRoot);
  return {
    kind: "ambiguous",
    paths: answering,
    message: `${answering.length} container runtimes answer and no kubelet says which one is Kubernetes': ${answering.join(", ")}`,
    next: "Name one with --runtime-endpoint.",
  };
}

/** Two paths may lead to one socket: people link k3s' to where every other tool looks for it. */
function lookFor(places: readonly string[]): {
  readonly present: readonly string[];
  readonly hidden: readonly string[];
} {
  const present = new Map<string, string>();
  const hidden: string[] = [];
  for (const path of places) {
    const seen = look(path);
    if (seen === "hidden") hidden.push(path);
    else if (seen !== "missing") {
      const identity = `${seen.dev}:${seen.ino}`;
      if (!present.has(identity)) present.set(identity, path);
    }
  }
  return { present: [...present.values()], hidden };
}

function look(path: string): Stats | "missing" | "hidden" {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? "missing";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "EACCES" || code === "EPERM" ? "hidden" : "missing";
  }
}

/** A probe beside others may not use up the time of the scan itself. */
const LONGEST_PROBE_MS = 2000;

async function speaksCri(path: string, timeoutMs: number): Promise<boolean> {
  const cri = openCri(path);
  try {
    await cri.version({ timeoutMs: Math.min(timeoutMs, LONGEST_PROBE_MS) });
    return true;
  } catch {
    // Whatever the reason, this is not the runtime to ask: a containerd without its CRI plugin, a dead socket.
    return false;
  } finally {
    cri.close();
  }
}
