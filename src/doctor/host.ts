import { accessSync, closeSync, constants, existsSync, openSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { resolveOnHost } from "../host/paths.ts";
import { procLink } from "../host/proc.ts";
import { errorLabel } from "../host/source.ts";
import { journaldDirectory } from "../node/journald.ts";
import { comparePidNamespace, WANTS_HOST_PID } from "../node/machine.ts";
import { absentCheck, type Check, missing, passed } from "./doctor-report.ts";

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
    checkReadable("kernel log", resolveOnHost(hostRoot, "/dev/kmsg", "follow"), "kernel stalls and hung tasks"),
    checkJournald(hostRoot, env),
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
    "log lines of kubelet and the runtime; findings rest on the other sources without them",
    "Run unghost on the host itself to include its journal.",
  );
}
