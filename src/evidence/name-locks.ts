import { isFullId, type SandboxId, sandboxName } from "../node/types/ids.ts";
import { runtimeReports } from "./runtime-reports.ts";
import type { NodeView } from "./view.ts";

/** Matches the complete answer of the runtime: a longer text may be forged. */
const LOCK =
  /^failed to reserve sandbox name "([^"\\]{1,600})": name "([^"\\]{1,600})" is reserved for "([0-9a-f]{64})"$/;

/**
 * Holder id -> the blocked name, from refused creations. The runtime's own records have to agree that the holder has
 * this name.
 */
export function namesHeldInLogs(view: NodeView): ReadonlyMap<SandboxId, string> {
  const held = new Map<SandboxId, string>();
  for (const report of runtimeReports(view.snapshot)) {
    if (report.kind !== "failed" || report.operation !== "run") continue;
    const [, wanted, name, id] = LOCK.exec(report.error) ?? [];
    if (name === undefined || name !== wanted || id === undefined || !isFullId(id)) continue;
    if (isNamed(id, name, view)) held.set(id, name);
  }
  return held;
}

/** Whether all sources that have the sandbox's name agree on this one, and at least one has it. */
function isNamed(id: SandboxId, name: string, view: NodeView): boolean {
  const { sandbox, metadata } = view.about(id);
  const known = [metadata?.name, sandbox === undefined ? undefined : sandboxName(sandbox.pod)];
  const names = known.filter((one) => one !== undefined && one !== "");
  return names.length > 0 && names.every((one) => one === name);
}
