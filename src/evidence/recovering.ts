import { valueOr } from "../host/source.ts";
import type { Candidate } from "./candidates.ts";
import { podPresence } from "./pod-presence.ts";
import type { NodeView } from "./view.ts";

/**
 * A live kubelet replaces dead sandboxes by itself within seconds of its start, and then keeps the old one for its
 * logs. Only what outlasts --min-age is stuck. Age is counted from the start of the runtime or of kubelet, whichever
 * is later, by the monotonic clock: for a sandbox that died with an earlier one that is how long it has been dead.
 */
export function isRecovering({ sandbox }: Pick<Candidate, "sandbox">, view: NodeView): boolean {
  const kubelet = valueOr(view.snapshot.processes, undefined)?.kubelet;
  if (kubelet === undefined || podPresence(sandbox, view) === "gone") return false;
  const { boot, runtime } = view.snapshot;
  if (boot.status !== "read") return true;
  const started = Math.max(kubelet.startedSecondsAfterBoot, runtime.process?.startedSecondsAfterBoot ?? 0);
  return (boot.value.uptimeSeconds - started) * 1000 < view.policy.minAgeMs;
}
