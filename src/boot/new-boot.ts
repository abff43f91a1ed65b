import { readProcessTable } from "../snapshot/process-table.ts";
import { readProcesses } from "../snapshot/processes.ts";

export type NewBoot = { readonly isNew: true } | { readonly isNew: false; readonly message: string };

/**
 * Whether no process of an earlier runtime is left: a restart of the service runs the same hook while pods are running.
 * The stored boot id is not enough, because it is missing on the first run.
 */
export async function proveNewBoot(
  root: string,
  boot: { readonly current: string; readonly last: string | undefined },
  deadline: AbortSignal,
): Promise<NewBoot> {
  if (boot.current !== "" && boot.current === boot.last) {
    return { isNew: false, message: "this boot was handled before: the service restarted, the machine did not" };
  }
  const table = await readProcessTable({ root, signal: deadline });
  const processes = await readProcesses({ root, table, signal: deadline });
  if (processes.status !== "read")
    return { isNew: false, message: "the process table cannot be read, so pods may be alive" };
  const { shims, byContainer } = processes.value;
  const [shim] = shims;
  if (shim !== undefined) return { isNew: false, message: `pods are alive: pid ${shim.pid} is the shim of ${shim.id}` };
  const [container] = byContainer;
  if (container !== undefined) {
    return { isNew: false, message: `containers are alive: pid ${container[1][0]} runs in ${container[0]}` };
  }
  return { isNew: true };
}
