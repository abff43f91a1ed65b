import { printable, truncate } from "../../host/text.ts";
import type { GhostReportStatus } from "../../kube/ghost-report.ts";
import { apiTime, bySeverity, findingSummary, summaryLine, summaryOf } from "../../report/node-summary.ts";
import type { AgentState, ScanState, Sighting } from "../state/state.ts";
import { type Condition, pausedWords } from "./condition.ts";

type ReportedFault = NonNullable<GhostReportStatus["findings"]>[number];

/**
 * The whole object has 8 KiB at most: many large objects have filled the etcd of other projects. Metadata with the owner
 * and the manager of its fields needs the rest.
 */
const MOST_BYTES = 6600;
const MOST_HEALS = 10;
const LONGEST_SUBJECT = 150;

/** Undefined before the first scan: the report of an earlier agent then stays. */
export function ghostReportOf(state: AgentState, condition: Condition): GhostReportStatus | undefined {
  return state.scan && fitted(contentOf(state, state.scan, condition));
}

function contentOf(state: AgentState, scan: ScanState, condition: Condition): GhostReportStatus {
  const sightings = state.sightings.toSorted((one, other) => bySeverity(one.finding, other.finding));
  const { worst, ...summary } = summaryOf(
    scan.report,
    sightings.map(({ finding }) => finding),
  );
  const faults = sightings.slice(0, worst.length).map(faultOf);
  return {
    ...summary,
    agentVersion: state.version,
    findings: unlessEmpty(faults),
    heals: unlessEmpty(healsOf(state)),
    notHealing: short(pausedWords(state)),
    conditions: [{ type: "GhostSandboxes", ...condition, lastTransitionTime: "" }],
  };
}

function faultOf({ finding, firstSeenAt, standing }: Sighting): ReportedFault {
  return {
    ...findingSummary(finding),
    since: apiTime(new Date(finding.since ?? firstSeenAt)),
    standing: standing.kind,
    next: standing.kind === "given-up" ? short(standing.next) : undefined,
  };
}

/** Also those by the command line and the boot hook. */
function healsOf({ runs = [] }: AgentState): NonNullable<GhostReportStatus["heals"]> {
  const heals = runs.flatMap(({ run, at, by, items }) =>
    items.map(({ class: id, subject, outcome }) => {
      const when = apiTime(new Date(at));
      return { at: when, run, by, class: id, subject: truncate(printable(subject), LONGEST_SUBJECT), outcome };
    }),
  );
  return heals.slice(0, MOST_HEALS);
}

function unlessEmpty<Item>(items: Item[]): Item[] | undefined {
  return items.length === 0 ? undefined : items;
}

function short(text: string | undefined): string | undefined {
  return text === undefined ? undefined : summaryLine(text);
}

/** The oldest heal, the last finding, or else the last pod, is left out until the rest fits. */
function fitted(status: GhostReportStatus): GhostReportStatus {
  const { findings = [], blockedPods = [], heals = [] } = status;
  if (Buffer.byteLength(JSON.stringify(status)) <= MOST_BYTES) return status;
  if (heals.length > 0) return fitted({ ...status, heals: unlessEmpty(heals.slice(0, -1)) });
  if (findings.length > blockedPods.length / 2)
    return fitted({ ...status, findings: unlessEmpty(findings.slice(0, -1)), truncated: true });
  if (blockedPods.length > 0)
    return fitted({ ...status, blockedPods: unlessEmpty(blockedPods.slice(0, -1)), truncated: true });
  return status;
}
