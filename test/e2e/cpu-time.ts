import type { LabNode } from "../../lab/node.ts";
import { HANG_GUARD_MS } from "../lab/real-node.ts";

/** Prints what the command prints, and on stderr the processor time that it took. */
const WITH_CPU_TIME = `
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, file=sys.stderr)
`;

/** Runs a command in the node. Its processor time does not depend on what else runs on the machine. */
export async function cpuSecondsOf(node: LabNode, ...command: readonly string[]) {
  const result = await node.exec(["python3", "-c", WITH_CPU_TIME, ...command], { timeoutMs: HANG_GUARD_MS });
  return { result, seconds: Number(result.stderr.trim().split("\n").at(-1)) };
}
