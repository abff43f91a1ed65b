import type { MemoryCluster } from "../../support/memory-cluster.ts";
import type { VirtualTime } from "../../support/virtual-time.ts";

/** A node whose condition changed just now; without a condition if none is given. */
export function putNode(
  { store }: MemoryCluster,
  time: VirtualTime,
  name: string,
  condition?: { readonly status: "True" | "False" | "Unknown" },
): void {
  const now = time.timing().now().toISOString();
  const others = [{ type: "Ready", status: "True", lastHeartbeatTime: now, lastTransitionTime: now }];
  const own = { type: "GhostSandboxes", lastHeartbeatTime: now, lastTransitionTime: now, ...condition };
  const status = { conditions: condition === undefined ? others : [...others, own] };
  store.put(`/api/v1/nodes/${name}`, { metadata: { name }, status });
}
