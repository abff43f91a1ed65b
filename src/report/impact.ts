import { classById } from "../classes/index.ts";
import { endWasLost } from "../evidence/ending.ts";
import type { Finding } from "../evidence/finding.ts";
import { STEPS, type StepKind, type StepOf } from "../evidence/step.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { ReportedFinding } from "./node-report.ts";

/** Data of a finding for the table. */
export function impactOf(
  finding: Finding,
  view: NodeView,
): Pick<ReportedFinding, "kind" | "since" | "sinceSource" | "blockedPods" | "blockedAddresses"> {
  const since = sinceOf(finding, view);
  const addresses = addressesOf(finding);
  const pods = blockedPodsOf(finding);
  return {
    kind: kindOf(finding),
    since: since?.at.toISOString(),
    sinceSource: since?.source,
    ...(pods.length === 0 ? {} : { blockedPods: pods.map((pod) => ({ ...pod })) }),
    ...(addresses === 0 ? {} : { blockedAddresses: addresses }),
  };
}

/** A ghost is about a sandbox; a leak has no owner. */
function kindOf({ class: classId, subject }: Finding): ReportedFinding["kind"] {
  if (classById(classId)?.category === "leak" || subject.type === "container") return "leak";
  return "sandboxId" in subject && subject.sandboxId !== undefined ? "ghost" : "other";
}

function blockedPodsOf({ blockedPods, blocks, subject }: Finding): NonNullable<Finding["blockedPods"]> {
  if (blockedPods !== undefined) return blockedPods;
  // A record in the database prevents the runtime's start, not only its pod.
  const pod = subject.type === "sandbox" || subject.type === "process" ? subject.pod : undefined;
  return pod === undefined || blocks.length === 0 ? [] : [{ namespace: pod.namespace, name: pod.name }];
}

function addressesOf({ cure }: Finding): number {
  return cure.reduce((sum, step) => sum + freedBy(step), 0);
}

function freedBy<Kind extends StepKind>(step: StepOf<Kind>): number {
  return STEPS[step.kind].addresses?.(step) ?? 0;
}

export const SINCE_SOURCES = [
  /** The start of the hung process. */
  "process",
  /** The runtime found it dead when it started. */
  "runtime-start",
  /** Its last container ended, or it was created, in this boot. */
  "last-sign",
  /** It died before this boot, at an unknown time: since the boot is a minimum. */
  "boot",
  /** The file, network namespace or lease was written. */
  "written",
] as const;

export interface Since {
  readonly at: Date;
  readonly source: (typeof SINCE_SOURCES)[number];
}

/** Since when the state exists, by the best source of the node. Only informational: no decision uses it. */
export function sinceOf({ subject }: Finding, view: NodeView): Since | undefined {
  const now = view.snapshot.observedAt.getTime();
  if (subject.type === "process") {
    const plugins = valueOr(view.snapshot.processes, undefined)?.plugins ?? [];
    const seconds = plugins.find(({ pid }) => pid === subject.pid)?.ageSeconds;
    return seconds === undefined ? undefined : { at: new Date(now - seconds * 1000), source: "process" };
  }
  const id = "sandboxId" in subject ? subject.sandboxId : undefined;
  const written = id === undefined ? writtenAt(subject, view) : tracesOf(id, view);
  const signs = id === undefined ? [] : signsOf(id, view);
  if (signs.length > 0) return sinceSigns(id ?? "", Math.max(...signs), view);
  return written.length === 0 ? undefined : { at: new Date(Math.max(...written)), source: "written" };
}

/** A sandbox does not survive a boot. The next runtime sets the end time of every container that it misses. */
function sinceSigns(id: string, lastSign: number, view: NodeView): Since {
  const boot = valueOr(view.snapshot.boot, undefined)?.startedAt.getTime();
  const own = view
    .about(id)
    .containers.filter(endWasLost)
    .flatMap(({ exit }) => plausible(view, exit?.finishedAt));
  if (own.length > 0) return { at: new Date(Math.max(lastSign, ...own)), source: "runtime-start" };
  if (boot === undefined || lastSign >= boot) return { at: new Date(lastSign), source: "last-sign" };
  const starts = runtimeStarts(view).filter((start) => start > lastSign);
  if (starts.length > 0) return { at: new Date(Math.min(...starts)), source: "runtime-start" };
  return { at: new Date(boot), source: "boot" };
}

/** Starts of the runtime at which containers of any sandbox were lost. */
function runtimeStarts(view: NodeView): readonly number[] {
  const containers = valueOr(view.snapshot.cri, undefined)?.containers ?? [];
  return containers.filter(endWasLost).flatMap(({ exit }) => plausible(view, exit?.finishedAt));
}

/** Its creation, and the ends of its containers. */
function signsOf(id: string, view: NodeView): readonly number[] {
  const { sandbox, containers, record, storeRecord } = view.about(id);
  return [
    ...plausible(view, sandbox?.createdAt),
    ...containers.flatMap(({ exit, createdAt }) => plausible(view, exit?.finishedAt ?? createdAt)),
    ...plausible(view, record?.createdAt),
    ...plausible(view, storeRecord?.createdAt),
  ];
}

/** Times of network files of a sandbox without any other trace. */
function tracesOf(id: string, view: NodeView): readonly number[] {
  const { leases, results, multus, flannel } = view.about(id);
  return [...leases, ...results, multus, flannel].flatMap((file) => plausible(view, file?.modifiedAt));
}

function writtenAt(subject: Finding["subject"], view: NodeView): readonly number[] {
  const { snapshot } = view;
  switch (subject.type) {
    case "netns":
      return plausible(view, valueOr(snapshot.netns, []).find(({ path }) => path === subject.path)?.modifiedAt);
    case "lease":
      return plausible(
        view,
        valueOr(snapshot.containerd, undefined)?.leases.find(({ id }) => id === subject.name)?.createdAt,
      );
    case "file": {
      const leases = valueOr(snapshot.cni.hostLocal, []).flatMap((network) => network.leases);
      return leases.flatMap((lease) => (lease.path === subject.path ? plausible(view, lease.modifiedAt) : []));
    }
    default:
      return [];
  }
}

/** Go's zero time and times in the future are ignored. */
function plausible({ snapshot }: NodeView, time: Date | bigint | undefined): readonly number[] {
  if (time === undefined) return [];
  const milliseconds = typeof time === "bigint" ? Number(time / 1_000_000n) : time.getTime();
  return milliseconds > 0 && milliseconds <= snapshot.observedAt.getTime() ? [milliseconds] : [];
}
