import type { LabNode } from "../node.ts";
import type { Injected } from "./injected.ts";

const TABLE = "/proc/cgroups";
const STAND_IN = "/var/lab/cgroups";

/**
 * The kernel has almost no memory cgroup left. The machine's own stay as they are: its table with another count is
 * mounted over it in the node, because 65,000 cgroups would be the machine's.
 */
export async function memoryCgroupsExhausted(node: LabNode, count = 65_500): Promise<Injected> {
  const stdout = await node.check(["cat", TABLE]);
  const table = stdout.replace(/^memory\t\d+\t\d+\t\d+$/m, `memory\t5\t${count}\t1`);
  if (!table.includes(`\t${count}\t`)) throw new Error(`${TABLE} has no row of memory cgroups: ${stdout}`);
  await node.writeFile(STAND_IN, table);
  await node.check(["mount", "--bind", STAND_IN, TABLE]);
  return { fault: "memory-cgroups-exhausted", did: `counts ${count} memory cgroups` };
}
