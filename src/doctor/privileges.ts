import { readProcFile } from "../host/proc.ts";
import { type Check, missing, passed } from "./doctor-report.ts";

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
  {
    name: "DAC_READ_SEARCH",
    bit: 2,
    neededFor: "reading processes of other users and files without read permission",
  },
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
  {
    name: "SYS_CHROOT",
    bit: 18,
    neededFor: "running the host's CNI plugins from a container",
    inContainersOnly: true,
  },
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
