import { isCreation, isFailing } from "../../evidence/pending.ts";
import { printable } from "../../host/text.ts";
import type { GhostReportStatus } from "../../kube/ghost-report.ts";
import type { ReportedFinding } from "../../report/node-report.ts";
import { podWords } from "../../report/pending.ts";
import type { AgentState, ScanState, Sighting } from "../state/state.ts";
import { apiTime, bySeverity, type Condition, pausedWords } from "./condition.ts";

type ReportedFault = NonNullable<GhostReportStatus["findings"]>[number];

/**
 * The whole object has 8 KiB at most: many large objects have filled the etcd of other projects. Metadata with the owner
 * and the manager of its fields needs the rest.
 */
const MOST_BYTES = 6600;
const MOST_FINDINGS = 10;
const MOST_CLASSES = 20;
const MOST_PODS = 20;
const MOST_HEALS = 10;
const LONGEST_TEXT = 240;
const LONGEST_SUBJECT = 150;

/** Undefined before the first scan: the report of an earlier agent then stays. */
export function ghostReportOf(state: AgentState, condition: Condition): GhostReportStatus | undefined {
  return state.scan && fitted(contentOf(state, state.scan, condition));
}

function contentOf(state: AgentState, scan: ScanState, condition: Condition): GhostReportStatus {
  const { report } = scan;
  const sightings = state.sightings.toSorted((one, other) => bySeverity(one.finding, other.finding));
  const classes = [...Map.groupBy(sightings, ({ finding }) => finding.class)]
    .map(([id, { length }]) => ({ class: id, count: length }))
    .toSorted((one, other) => other.count - one.count || (one.class < other.class ? -1 : 1));
  const failing = (report.pending ?? []).filter(isFailing);
  const waiting = [
    ...sightings.flatMap(({ finding }) => finding.blockedPods ?? []),
    ...(report.podCreation?.blockedPods ?? []),
    ...failing.flatMap(({ pod }) => pod ?? []),
  ];
  const blockedPods = [...new Set(waiting.map((pod) => printable(podWords(pod))))].toSorted();
  const faults = sightings.slice(0, MOST_FINDINGS).map(faultOf);
  return {
    verdict: report.verdict,
    worstClass: sightings[0]?.finding.class,
    observedAt: apiTime(new Date(report.observedAt)),
    agentVersion: state.version,
    sandboxes: report.sandboxes,
    podCreation: creationOf(report),
    totals: { findings: sightings.length, blockedPods: blockedPods.length },
    classes: unlessEmpty(classes.slice(0, MOST_CLASSES)),
    findings: unlessEmpty(faults),
    blockedPods: unlessEmpty(blockedPods.slice(0, MOST_PODS)),
    heals: unlessEmpty(healsOf(state)),
    notHealing: short(pausedWords(state)),
    truncated: faults.length < sightings.length || blockedPods.length > MOST_PODS || classes.length > MOST_CLASSES,
    conditions: [{ type: "GhostSandboxes", ...condition, lastTransitionTime: "" }],
  };
}

function faultOf({ finding, firstSeenAt, standing }: Sighting): ReportedFault {
  const { pod, sandboxId } = finding.subject;
  return {
    class: finding.class,
    severity: finding.severity,
    summary: cut(finding.summary),
    pod: pod && printable(podWords(pod)),
    sandboxId,
    since: apiTime(new Date(finding.since ?? firstSeenAt)),
    blocks: countBlocked(finding),
    standing: standing.kind,
    next: standing.kind === "given-up" ? short(standing.next) : undefined,
  };
}

/** Also those by the command line and the boot hook. */
function healsOf({ runs = [] }: AgentState): NonNullable<GhostReportStatus["heals"]> {
  const heals = runs.flatMap(({ run, at, by, items }) =>
    items.map(({ class: id, subject, outcome }) => {
      const when = apiTime(new Date(at));
      return { at: when, run, by, class: id, subject: cut(subject, LONGEST_SUBJECT), outcome };
    }),
  );
  return heals.slice(0, MOST_HEALS);
}

function countBlocked({ blockedPods = [] }: ReportedFinding): number {
  return new Set(blockedPods.map(podWords)).size;
}

function creationOf({ podCreation, pending = [] }: ScanState["report"]): GhostReportStatus["podCreation"] {
  if (podCreation === undefined) return undefined;
  const { able, lastSuccess, lastFailure } = podCreation;
  const [since] = pending
    .filter((one) => isCreation(one) && isFailing(one))
    .map((one) => one.since)
    .toSorted();
  return {
    able,
    since: able === "no" && since !== undefined ? apiTime(new Date(since)) : undefined,
    lastSuccessAt: lastSuccess && apiTime(new Date(lastSuccess.at)),
    lastFailureAt: lastFailure?.at === undefined ? undefined : apiTime(new Date(lastFailure.at)),
    code: lastFailure?.code,
    message: short(lastFailure?.message),
  };
}

function unlessEmpty<Item>(items: Item[]): Item[] | undefined {
  return items.length === 0 ? undefined : items;
}

function short(text: string | undefined): string | undefined {
  return text === undefined ? undefined : cut(text);
}

function cut(text: string, longest = LONGEST_TEXT): string {
  const safe = printable(text);
  return safe.length <= longest ? safe : `${safe.slice(0, longest - 1)}…`;
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
