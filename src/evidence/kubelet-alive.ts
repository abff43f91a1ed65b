import { valueOr } from "../host/source.ts";
import type { NodeView } from "./view.ts";

/** A kubelet process runs on the node: whatever it can finish by itself is its own. */
export function isKubeletAlive({ snapshot }: Pick<NodeView, "snapshot">): boolean {
  return valueOr(snapshot.processes, undefined)?.kubelet !== undefined;
}
