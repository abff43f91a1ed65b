import type { Sandbox } from "../snapshot/types.ts";
import { lineTime } from "./log-time.ts";
import { type CallReport, callReports, concernsPod, isFresh } from "./reports.ts";
import { runtimeReports } from "./runtime-reports.ts";
import type { NodeView } from "./view.ts";

/**
 * What kubelet or the cluster lately reported about stopping this sandbox, unless its network has been released since.
 * Not the runtime's own reports: a manual stop that failed is not retried by anything.
 */
export function removalReports({ id, pod }: Pick<Sandbox, "id" | "pod">, view: NodeView): readonly CallReport[] {
  const { namespace, name, uid } = pod;
  const own = callReports(view).filter((report) => {
    if (report.operation !== "remove" || report.by === "runtime" || !isFresh(report, view)) return false;
    if (report.sandboxId !== undefined) return report.sandboxId === id;
    return report.pod?.uid !== undefined && concernsPod(report, { namespace, name, uid });
  });
  if (own.length === 0) return own;
  const releasedAt = networkReleasedAt(id, view);
  return own.filter(({ at }) => releasedAt === undefined || at === undefined || at > releasedAt);
}

/** Sandboxes that kubelet fails to stop, for a cause that shows in what it reported. */
export function failingRemovals(view: NodeView, isOfCause: (report: CallReport) => boolean): readonly Sandbox[] {
  return view.sandboxes.filter((sandbox) => removalReports(sandbox, view).some(isOfCause));
}

/** When the runtime last logged that DEL succeeded for it. A stop that fails in a later step is reported after that. */
function networkReleasedAt(id: string, { snapshot }: NodeView): Date | undefined {
  const released = runtimeReports(snapshot).findLast(
    (report) => report.kind === "network-released" && report.sandboxId === id,
  );
  return released === undefined ? undefined : lineTime(released.line.text, snapshot.observedAt);
}
