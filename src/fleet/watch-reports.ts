import * as v from "valibot";
import type { ApiAccess } from "../kube/access.ts";
import { openApi } from "../kube/api.ts";
import type { Resource } from "../kube/cluster-facts.ts";
import { KubeError } from "../kube/errors.ts";
import { GHOST_REPORTS, GhostReportSchema, type GhostReportStatus } from "../kube/ghost-report.ts";
import { watchList } from "../kube/watched-list.ts";

/** What of a report is printed: a line for each change of this. */
export interface WatchedReport {
  readonly name: string;
  readonly verdict: GhostReportStatus["verdict"] | "deleted";
  readonly findings: number;
  readonly classes: string;
  readonly blockedPods: number;
  readonly podCreation: string;
}

const ReportObject = v.pipe(
  v.looseObject({ metadata: v.object({ name: v.string() }) }),
  v.transform((object): WatchedReport => {
    const { name } = object.metadata;
    const report = v.safeParse(GhostReportSchema, object);
    return summaryOf(name, report.success ? report.output.status : undefined);
  }),
);

/** A report without a status, or of another version, shows nothing. */
function summaryOf(name: string, status: GhostReportStatus | undefined): WatchedReport {
  if (status === undefined)
    return { name, verdict: "unknown", findings: 0, classes: "", blockedPods: 0, podCreation: "-" };
  const { verdict, totals, classes = [], podCreation } = status;
  return {
    name,
    verdict,
    findings: totals.findings,
    classes: classes.map(({ class: id, count }) => `${count} ${id}`).join(", "),
    blockedPods: totals.blockedPods,
    podCreation: podCreation?.able ?? "-",
  };
}

const REPORTS: Resource<WatchedReport, WatchedReport> = {
  path: GHOST_REPORTS,
  query: () => ({}),
  metadataOnly: false,
  schema: ReportObject,
  keyOf: ({ name }) => name,
  reduce: (report) => report,
};

/** Thousands of reports arrive one by one in a burst. */
const COLLECT_MS = 50;
const MOST_BYTES = 64 * 1024 * 1024;

export interface WatchTools {
  readonly access: ApiAccess;
  readonly requestMs: number;
  readonly stop: AbortSignal;
  /** The first call has all reports; the later ones those that have changed. */
  readonly onChange: (reports: readonly WatchedReport[]) => void;
  /** The watch was interrupted, and is being opened again. */
  readonly onTrouble: (error: KubeError) => void;
}

/** Follows the reports of all nodes until it is stopped. Throws a KubeError if they cannot be listed. */
export async function watchReports({ access, requestMs, stop, onChange, onTrouble }: WatchTools): Promise<void> {
  const limits = { timeoutMs: requestMs, maxBytes: MOST_BYTES, maxValues: Number.POSITIVE_INFINITY };
  let timer: NodeJS.Timeout | undefined;
  let printed: ReadonlyMap<string, WatchedReport> | undefined;
  const watched = watchList(REPORTS, {
    open: () => Promise.resolve({ api: openApi(access, limits), name: "" }),
    openMs: requestMs,
    onChange: () => {
      timer ??= setTimeout(show, COLLECT_MS);
    },
  });

  function show(): void {
    timer = undefined;
    const items = watched.items(0);
    if (items instanceof KubeError) {
      onTrouble(items);
      return;
    }
    const now = new Map(items.map((item) => [item.name, item]));
    const gone = [...(printed?.keys() ?? [])].filter((name) => !now.has(name));
    const before = printed ?? new Map<string, WatchedReport>();
    const changed = items.filter((item) => !isSame(item, before.get(item.name)));
    onChange([...changed, ...gone.map((name) => ({ ...summaryOf(name, undefined), verdict: "deleted" as const }))]);
    printed = now;
  }

  await watched.started;
  const first = watched.items(0);
  try {
    if (first instanceof KubeError) throw first;
    clearTimeout(timer);
    show();
    await new Promise<void>((resolve) => {
      if (stop.aborted) resolve();
      stop.addEventListener("abort", () => resolve(), { once: true });
    });
  } finally {
    clearTimeout(timer);
    watched.close();
  }
}

function isSame(one: WatchedReport, other: WatchedReport | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
