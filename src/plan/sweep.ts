import { replaysOf } from "../evidence/replays.ts";
import type { Step } from "../evidence/step.ts";
import type { AboutId } from "../evidence/view.ts";
import type { SandboxId } from "../snapshot/ids.ts";

/**
 * What may still be held after the runtime has removed a sandbox: where a delegate was never called, or DEL ran
 * without its cache. Each step looks first and does nothing where nothing is left.
 */
export function sweepAfter(sandboxId: SandboxId, about: AboutId): readonly Step[] {
  const steps: Step[] = [];
  const leases = about.leases.map(({ network, path, address, owner }) => ({
    network,
    path,
    address,
    interfaceName: owner?.interfaceName ?? "",
  }));
  if (leases.length > 0) steps.push({ kind: "release-addresses", sandboxId, leases });
  const files = [...about.results, about.multus, about.flannel].filter((file) => file !== undefined);
  steps.push(...replaysOf(sandboxId, about.results));
  for (const file of files) {
    if (file.health === "ok") steps.push({ kind: "quarantine-file", path: file.path, health: "orphaned" });
  }
  return steps;
}
