import { readFileSync } from "node:fs";
import { inBackground } from "../background-program.ts";
import type { LabNode } from "../node.ts";

/** As many files a process as it may have, in as many processes as that needs. */
const DESCRIPTORS = `
import ctypes, fcntl, os, resource, signal, sys
name, user, wanted = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
os.setuid(user)
ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
first = os.open("/dev/null", os.O_RDONLY)
for _ in range(min(limit, wanted)):
    try: fcntl.fcntl(first, fcntl.F_DUPFD, 0)
    except OSError: break
for _ in range(wanted // limit):
    if os.fork() == 0: signal.pause()
print("ready", flush=True)
signal.pause()
`;

const PROCESSES = `
import ctypes, os, signal, sys
name, user, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.setuid(user)
ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
for _ in range(processes):
    if os.fork() == 0: signal.pause()
print("ready", flush=True)
signal.pause()
`;

interface Flood {
  /** Of each process. */
  readonly name: string;
  readonly user: number;
}

export async function floodDescriptors(node: LabNode, flood: Flood & { readonly descriptors: number }): Promise<void> {
  await inBackground(node, DESCRIPTORS, [flood.name, String(flood.user), String(flood.descriptors)]);
}

/** As many as asked for, or as the machine has room for; returns how many. They end with the node. */
export async function floodProcesses(node: LabNode, flood: Flood & { readonly processes: number }): Promise<number> {
  const processes = Math.min(flood.processes, roomForProcesses());
  if (processes < LEAST)
    throw new Error(`the machine has room for ${processes} more processes, and ${LEAST} are a flood`);
  await inBackground(node, PROCESSES, [flood.name, String(flood.user), String(processes)]);
  return processes;
}

const LEAST = 2000;
/** For what else runs on the machine. */
const SPARE = 8000;
const KB_OF_A_PROCESS = 512;

function roomForProcesses(): number {
  const most = Number(readFileSync("/proc/sys/kernel/pid_max", "utf8"));
  const tasks = Number(readFileSync("/proc/loadavg", "utf8").split("/")[1]?.split(" ")[0]);
  const [, availableKb] = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8")) ?? [];
  return Math.floor(Math.min(most - tasks - SPARE, Number(availableKb) / 2 / KB_OF_A_PROCESS));
}
