import type { Sandbox } from "../snapshot/types.ts";
import { type CallReport, callReports, concernsPod, isFresh } from "./reports.ts";
import type { NodeView } from "./view.ts";

/**
 * What kubelet or the cluster lately reported about stopping this sandbox. Not the runtime's word: a stop that somebody
 * tried by hand is nobody's wish any more.
 */
export function removalReports({ id, pod }: Pick<Sandbox, "id" | "pod">, view: NodeView): readonly CallReport[] {
  const { namespace, name, uid } = pod;
  return callReports(view).filter((report) => {
    if (report.operation !== "remove" || report.by === "runtime" || !isFresh(report, view)) return false;
    if (report.sandboxId !== undefined) return report.sandboxId === id;
    return report.pod?.uid !== undefined && concernsPod(report, { namespace, name, uid });
  });
}
