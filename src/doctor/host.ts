import { accessSync, closeSync, constants, existsSync, openSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { resolveOnHost } from "../host/paths.ts";
import { procLink, procText, readProcFile } from "../host/proc.ts";
import { errorLabel } from "../host/source.ts";
import { journaldDirectory } from "../node/journald.ts";
import { comparePidNamespace, WANTS_HOST_PID } from "../node/machine.ts";
import { absentCheck, type Check, missing, optionalCheck, passed } from "./doctor-report.ts";

export interface HostPlaces {
  readonly hostRoot: string;
  readonly cniCacheDir: string;
  readonly stateDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function checkHost({ hostRoot, cniCacheDir, stateDir, env }: HostPlaces): readonly Check[] {
  const cache = resolveOnHost(hostRoot, cniCacheDir, "follow");
  return [
    checkPidNamespace(hostRoot),
    checkNetworkNamespace(hostRoot),
    checkWritable("cni cache", cache, "quarantining corrupt CNI cache files"),
    checkWritable("state directory", stateDir, "the journal: without it nothing is changed"),
    checkWritable("agent lock", resolveOnHost(hostRoot, "/run/unghost", "follow"), "noticing a second agent"),
    optionalCheck(
      checkReadable("kernel log", resolveOnHost(hostRoot, "/dev/kmsg", "follow"), "kernel stalls and hung tasks"),
    ),
    optionalCheck(checkJournald(hostRoot, env)),
  ];
}

function checkPidNamespace(hostRoot: string): Check {
  const compared = comparePidNamespace(hostRoot);
  if (compared.kind === "own") return passed("pid namespace", "the node's");
  return missing("pid namespace", compared.reason, "ending hung CNI plugins", `To end them, ${WANTS_HOST_PID}.`);
}

function checkNetworkNamespace(hostRoot: string): Check {
  const neededFor = "CNI plugins that delete links and firewall rules of the node";
  const [own, inits] = [procLink("/proc/self/ns/net"), procLink(join(hostRoot, "/proc/1/ns/net"))];
  if (own === undefined || inits === undefined) {
    return missing("network namespace", "process 1 does not show its own", neededFor, "Add the capability SYS_PTRACE.");
  }
  if (own === inits) return passed("network namespace", "the node's");
  return missing("network namespace", `${own}, and the node's is ${inits}`, neededFor, "Set hostNetwork: true.");
}

/** Checks without writing: a missing directory is created below the nearest existing one. */
function checkWritable(id: string, path: string, neededFor: string): Check {
  let there = path;
  while (!existsSync(there) && dirname(there) !== there) there = dirname(there);
  try {
    accessSync(there, constants.W_OK | constants.X_OK);
    return passed(id, there === path ? `${path} is writable` : `${path} can be created`);
  } catch (error) {
    const code = errorLabel(error);
    const why = code === "EROFS" ? "is mounted read-only" : `is not writable (${code})`;
    return missing(id, `${there} ${why}`, neededFor, `Mount ${path} writable.`);
  }
}

function checkReadable(id: string, path: string, neededFor: string): Check {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return absentCheck(id, `${path} does not exist`);
  try {
    // A device that the container's cgroup forbids has readable permissions; only open() fails.
    closeSync(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK));
    return passed(id, `${path} is readable`);
  } catch (error) {
    return missing(
      id,
      `${path} is not readable (${errorLabel(error)})`,
      neededFor,
      "Only a privileged container may open it; the host itself may.",
    );
  }
}

function checkJournald(hostRoot: string, env: HostPlaces["env"]): Check {
  const directory = journaldDirectory(hostRoot);
  if (directory === undefined) return absentCheck("journald", "this node keeps none; logs are read from files");
  const program = (env["PATH"] ?? "").split(delimiter).find((dir) => existsSync(join(dir, "journalctl")));
  if (program !== undefined) return passed("journald", `${directory}, read by journalctl`);
  return missing(
    "journald",
    `${directory} is there, and no journalctl to read it`,
    "log lines of kubelet and the runtime as evidence",
    "Run unghost on the host itself to include its journal.",
  );
}

export interface NeededCapability {
  readonly name: string;
  readonly bit: number;
  readonly neededFor: string;
  /** Needed only if the node's root directory is mounted into a container. */
  readonly inContainersOnly?: true;
}

/**
 * The capabilities that a pod of unghost needs in addition to uid 0. deploy/ grants exactly these; a test compares
 * them.
 */
export const CAPABILITIES: readonly NeededCapability[] = [
  { name: "DAC_READ_SEARCH", bit: 2, neededFor: "files without read permission and inotify instances of other users" },
  {
    name: "SYS_PTRACE",
    bit: 19,
    neededFor: "seeing executables, namespaces and open files of processes: the proof that a sandbox is dead",
  },
  {
    name: "SYS_ADMIN",
    bit: 21,
    neededFor: "unmounting leaked network namespaces, and running CNI plugins, in the host's mount namespace",
  },
  { name: "SYS_CHROOT", bit: 18, neededFor: "running the host's CNI plugins from a container", inContainersOnly: true },
  { name: "NET_ADMIN", bit: 12, neededFor: "CNI plugins that delete links, routes and firewall rules" },
];

export function checkPrivileges(hostRoot: string): readonly Check[] {
  const uid = process.geteuid?.() ?? -1;
  const user =
    uid === 0
      ? passed("user", "root")
      : missing(
          "user",
          `user ${uid}`,
          "the runtime's socket, the CNI caches and the state directory",
          "Run it as root.",
        );
  const status = readProcFile("/proc/self/status");
  const effective = status.kind === "content" ? effectiveIn(status.text) : undefined;
  if (effective === undefined) {
    return [user, missing("capabilities", "/proc/self/status cannot be read", "knowing what is permitted here")];
  }
  const needed = CAPABILITIES.filter(({ inContainersOnly }) => inContainersOnly !== true || hostRoot !== "/");
  return [user, ...needed.map((capability) => judge(capability, effective))];
}

export function effectiveIn(status: string): bigint | undefined {
  const hex = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
  return hex === undefined ? undefined : BigInt(`0x${hex}`);
}

function judge({ name, bit, neededFor }: NeededCapability, effective: bigint): Check {
  const id = `capability ${name}`;
  if (((effective >> BigInt(bit)) & 1n) === 1n) return passed(id, "granted");
  return missing(
    id,
    "not granted",
    neededFor,
    `Add ${name} to securityContext.capabilities, or use --profile=sysadmin.`,
  );
}

/**
 * The cgroup values of a request of 50m. cgroup v2 has the same weight for all requests up to about 25m; runtimes since
 * 2025 convert to higher weights, so there only a pod without a request is detected.
 */
const LEAST = { shares: 50, weight: 2 };

interface Place {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cgroups?: string;
}

/**
 * The CPU share of the agent's pod on a busy node. Its nice value has no effect there: the kernel divides time between
 * cgroups first, and the agent is alone in its own.
 */
export function checkCpuShare({ env, cgroups = "/sys/fs/cgroup" }: Place): readonly Check[] {
  // Set by the chart: other pods, like those of kubectl debug, do not run the keeper.
  if (env["POD_UID"] === undefined) return [];
  const weight = numberIn(`${cgroups}/cpu.weight`);
  const shares = numberIn(`${cgroups}/cpu/cpu.shares`) ?? numberIn(`${cgroups}/cpu,cpuacct/cpu.shares`);
  const [value, least, unit] =
    weight === undefined ? [shares, LEAST.shares, "cpu.shares"] : [weight, LEAST.weight, "cpu.weight"];
  if (value === undefined) return [];
  const detail = `${unit} ${value}`;
  if (value >= least) return [passed("cpu request", detail)];
  const neededFor = "syncing CNI files within a second on a busy node";
  return [optionalCheck(missing("cpu request", `${detail}, of a small request or none`, neededFor, NEXT))];
}

const NEXT = "Set resources.requests.cpu to 100m.";

function numberIn(path: string): number | undefined {
  const number = Number.parseInt(procText(path), 10);
  return Number.isNaN(number) ? undefined : number;
}
