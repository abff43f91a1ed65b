import type { Sandbox } from "../snapshot/types.ts";
import type { NodeView } from "./view.ts";

/** What Kubernetes says of the sandbox's pod; `unasked` when there was nobody to ask. */
export type PodTruth = "known" | "gone" | "unasked";

export function podTruth(sandbox: Sandbox, { snapshot }: NodeView): PodTruth {
  const { kubernetes } = snapshot;
  if (kubernetes.source === "none") return "unasked";
  return kubernetes.pods.some(({ uid }) => uid === sandbox.pod.uid) ? "known" : "gone";
}
