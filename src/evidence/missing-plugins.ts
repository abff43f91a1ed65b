import { valueOr } from "../host/source.ts";
import type { CniConfig } from "../snapshot/types/cni.ts";
import type { Evidence } from "./finding.ts";
import { runtimeReports } from "./runtime-reports.ts";
import type { NodeView } from "./view.ts";

export interface MissingPlugin {
  readonly type: string;
  readonly evidence: readonly Evidence[];
}

/**
 * Plugins of the chain without a program. CRI-O does not report its search path, and the default path is then a guess:
 * the plugin may be elsewhere, unless a log names the same path as the one that was searched.
 */
export function missingPlugins(conf: CniConfig, view: NodeView): readonly MissingPlugin[] {
  const missing = conf.plugins.filter(({ binaryFound }) => !binaryFound).map(({ type }) => type);
  const reportsDirs = valueOr(view.snapshot.cri, undefined)?.cniDirs !== undefined;
  if (reportsDirs || missing.length === 0) return missing.map((type) => ({ type, evidence: [] }));
  const searched = failedSearches(view);
  const known = new Set([...conf.binDirs, conf.multus?.binDir].map((dir) => withoutSlash(dir ?? "")));
  return missing.flatMap((type) => {
    const search = searched.find((one) => one.type === type && one.dirs.every((dir) => known.has(dir)));
    if (search === undefined) return [];
    const fact = `${search.place}: the runtime itself did not find ${type} in ${search.dirs.join(", ")}`;
    return [{ type, evidence: [{ source: "logs", fact }] }];
  });
}

interface Search {
  readonly place: string;
  readonly type: string;
  readonly dirs: readonly string[];
}

const NOT_FOUND = /failed to find plugin "([^"\\]{1,80})" in path \[([^\]]{1,2000})\]$/;

/** From the end of the runtime's error. */
function failedSearches({ snapshot }: NodeView): readonly Search[] {
  return runtimeReports(snapshot).flatMap((report) => {
    const [, type, path] = "error" in report ? (NOT_FOUND.exec(report.error) ?? []) : [];
    if (type === undefined || path === undefined) return [];
    return [{ place: report.line.place, type, dirs: [...new Set(path.split(" ").map(withoutSlash))] }];
  });
}

function withoutSlash(dir: string): string {
  return dir.replace(/\/$/, "");
}
