import { blockingResults, isBroken } from "./corrupt-files.ts";
import { runtimeReports } from "./runtime-reports.ts";
import type { AboutId, NodeView } from "./view.ts";

/**
 * Tells of a sandbox whether its removal is known to fail: the runtime or kubelet reports that it has, or a file that it
 * has to read cannot be read. In a storm of retries a plugin is at work on such a sandbox at almost any moment, and never
 * with success.
 */
export function failedBefore(view: NodeView): (id: string, about: AboutId) => boolean {
  let reported: ReadonlySet<string> | undefined;
  return (id, about) => {
    const notes = [about.multus, about.flannel].filter((file) => file !== undefined);
    if (blockingResults(about.results, view).length > 0 || notes.some(isBroken)) return true;
    reported ??= sandboxesThatFailedToEnd(view);
    return reported.has(id);
  };
}

function sandboxesThatFailedToEnd({ snapshot }: NodeView): ReadonlySet<string> {
  const failures = runtimeReports(snapshot).filter((report) => report.kind === "failed");
  const endings = failures.filter(({ operation }) => operation !== "run");
  return new Set(endings.flatMap(({ sandboxId }) => sandboxId ?? []));
}
