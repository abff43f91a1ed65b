import {
  type CniEnviron,
  type ProcessStat,
  type ProcRead,
  parseCniEnviron,
  parseNamespaceLink,
  parseStat,
  readProcFile,
  readProcFileWithin,
  readProcLink,
  splitNul,
} from "../host/proc.ts";

/** What one process shows about sandboxes. */
export interface ProcessTraces {
  readonly stat: ProcessStat;
  /** The content of /proc/<pid>/cgroup. */
  readonly cgroup: string;
  readonly netns: bigint | "denied" | undefined;
  /** The CNI call it belongs to; never set for a shim. */
  readonly cni: CniEnviron | undefined;
  /** The id in its arguments, if it has the name of a shim. */
  readonly shim: ShimArguments | undefined;
  readonly argv: readonly string[];
  /** Why its environment is unknown, if it is. */
  readonly hidden: "denied" | "timeout" | undefined;
}

/** More than a plugin gets; the rest of a longer environment is not read. */
const MAX_ENVIRON_BYTES = 128 * 1024;

/** Timeout for one process in uninterruptible sleep. There are few, and those that lock their memory do so for long. */
const SLEEPER_PATIENCE_MS = 100;

/** Returns undefined if the process ended meanwhile. Synchronous, unless the process is in uninterruptible sleep. */
export function readTraces(
  proc: string,
  stat: ProcessStat,
): ProcessTraces | undefined | Promise<ProcessTraces | undefined> {
  const dir = `${proc}/${stat.pid}`;
  return stat.state === "D" ? readSleeper(dir, stat) : readAwake(dir, stat);
}

function readAwake(dir: string, stat: ProcessStat): ProcessTraces | undefined {
  const environ = readProcFile(`${dir}/environ`, MAX_ENVIRON_BYTES);
  return tracesOf(dir, stat, environ, (path) => readProcFile(path));
}

async function readSleeper(dir: string, stat: ProcessStat): Promise<ProcessTraces | undefined> {
  const environ = await readProcFileWithin(SLEEPER_PATIENCE_MS, `${dir}/environ`, MAX_ENVIRON_BYTES);
  // A disk under load puts every process into this state for moments.
  if (isLate(environ) && !isAsleep(dir)) return readAwake(dir, stat);
  // If one read hangs, the other does as well, and every hung read takes a thread of a small pool.
  const cmdline =
    environ.kind === "content"
      ? await readProcFileWithin(SLEEPER_PATIENCE_MS, `${dir}/cmdline`, MAX_ENVIRON_BYTES)
      : environ;
  return tracesOf(dir, stat, environ, () => cmdline);
}

function isAsleep(dir: string): boolean {
  const stat = readProcFile(`${dir}/stat`);
  return stat.kind === "content" && parseStat(stat.text)?.state === "D";
}

function isLate(content: ProcRead): boolean {
  return content.kind === "unreadable" && content.code === "ETIMEDOUT";
}

function tracesOf(
  dir: string,
  stat: ProcessStat,
  environ: ProcRead,
  readCmdline: (path: string) => ProcRead,
): ProcessTraces | undefined {
  const cgroup = readProcFile(`${dir}/cgroup`);
  if (environ.kind === "gone" || cgroup.kind === "gone") return undefined;
  const netns = readProcLink(`${dir}/ns/net`);
  const shim = isShim(stat.comm);
  const cni = shim ? undefined : parseCniEnviron(textOf(environ));
  const argv = shim || cni !== undefined || stat.comm === "k3s" ? splitNul(textOf(readCmdline(`${dir}/cmdline`))) : [];
  return {
    stat,
    cgroup: textOf(cgroup),
    netns: netns.kind === "denied" ? "denied" : parseNamespaceLink(textOf(netns)),
    cni,
    shim: shim ? shimArguments(argv) : undefined,
    argv,
    hidden: hiddenBy(environ, netns),
  };
}

function hiddenBy(environ: ProcRead, netns: ProcRead): ProcessTraces["hidden"] {
  if (environ.kind === "denied" || netns.kind === "denied") return "denied";
  return isLate(environ) ? "timeout" : undefined;
}

function textOf(content: ProcRead): string {
  return content.kind === "content" ? content.text : "";
}

/** The kernel truncates a name to 15 characters, which cuts off `-runc-v2`. */
function isShim(comm: string): boolean {
  return comm === "containerd-shim" || comm === "conmon" || comm === "conmonrs";
}

export interface ShimArguments {
  /** Of a sandbox, or of a container with its own shim. */
  readonly id: string;
  /** Docker's containers are in `moby`, those of ctr and nerdctl in `default`; conmon has none. */
  readonly isKubernetes: boolean;
  /** The socket of its containerd. */
  readonly address?: string;
}

/** `-namespace N -id ID -address SOCKET` of containerd's shims, `-c ID` of conmon, which podman uses like CRI-O. */
export function shimArguments(argv: readonly string[]): ShimArguments | undefined {
  const id = valueOf(argv, "-id", "--id", "-c", "--cid");
  if (!id) return undefined;
  const namespace = valueOf(argv, "-namespace", "--namespace");
  const address = valueOf(argv, "-address", "--address");
  const isKubernetes = (namespace ?? "k8s.io") === "k8s.io" && !argv.includes("--exit-command");
  return { id, isKubernetes, address };
}

function valueOf(argv: readonly string[], ...flags: readonly string[]): string | undefined {
  const at = argv.findIndex((argument) => flags.includes(argument));
  return at === -1 ? undefined : argv[at + 1];
}
