import type { LeaseCount } from "../state.ts";
import type { Sample } from "./state-metrics.ts";

/** Names come from the node's disk: a directory with too many entries must not cause a flood of series. */
export const MAX_NETWORKS = 32;
const THE_REST = "(other)";

/** `free` is exported only if it was counted: a 0 for "unknown" would mean "exhausted". The other two always exist. */
export function leaseSamples(leases: readonly LeaseCount[]): readonly Sample[] {
  const networks = [...new Set(leases.map(({ network }) => network))].toSorted();
  const shown = new Set(networks.length <= MAX_NETWORKS ? networks : networks.slice(0, MAX_NETWORKS - 1));
  const byNetwork = Map.groupBy(leases, ({ network }) => (shown.has(network) ? network : THE_REST));
  return [...byNetwork].flatMap(([network, counts]) => samplesOf(network, counts));
}

function samplesOf(network: string, counts: readonly LeaseCount[]): readonly Sample[] {
  const totals = new Map<LeaseCount["state"], number>([
    ["used", 0],
    ["leaked", 0],
  ]);
  for (const { state, count } of counts) totals.set(state, (totals.get(state) ?? 0) + count);
  return [...totals].map(([state, value]) => ({ labels: { network, state }, value }));
}
