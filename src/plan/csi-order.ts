import { dirname } from "node:path/posix";
import { isKubeletAlive } from "../evidence/kubelet-alive.ts";
import type { Step } from "../evidence/step.ts";
import type { NodeView } from "../evidence/view.ts";
import type { Sandbox } from "../snapshot/types.ts";
import type { PlannedAction } from "./plan.ts";

type CsiMounts = { readonly dirs: readonly string[]; readonly registers: boolean };

/** The driver directories that a sandbox's pod mounts, by the API; undefined where that is not known or there are none. */
export function csiOf({ pod }: Pick<Sandbox, "pod">, { snapshot }: NodeView): CsiMounts | undefined {
  if (snapshot.kubernetes.source !== "api") return undefined;
  return snapshot.kubernetes.pods.find(({ uid }) => uid === pod.uid)?.csi;
}

/**
 * Pods that talk to a driver crash as long as nobody serves its socket. Where the plugin that serves it is healed in the
 * same run, they wait for the socket first; for a while, since another cause may keep it away.
 */
export function behindTheirPlugin(actions: readonly PlannedAction[], view: NodeView): readonly PlannedAction[] {
  const missing = new Set(actions.flatMap(({ finding }) => finding.missingSockets ?? []));
  if (missing.size === 0 || !isKubeletAlive(view)) return actions;
  return actions.map((action) => {
    const { subject, missingSockets } = action.finding;
    if (missingSockets !== undefined || subject.type !== "sandbox") return action;
    const { sandbox } = view.about(subject.sandboxId);
    const dirs = (sandbox && csiOf(sandbox, view)?.dirs) ?? [];
    const waits = [...missing]
      .filter((path) => dirs.includes(dirname(path)))
      .map((path): Step => ({ kind: "await-socket", path, optional: true }));
    return waits.length === 0 ? action : { ...action, steps: [...waits, ...action.steps] };
  });
}
