import { classById } from "../classes/index.ts";
import type { Finding } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { ReportedFinding } from "./node-report.ts";

/** What a table shows of a finding beside its texts, as data. */
export function impactOf(
  finding: Finding,
  view: NodeView,
): Pick<ReportedFinding, "kind" | "since" | "blockedPods" | "blockedAddresses"> {
  const since = sinceOf(finding, view);
  const addresses = addressesOf(finding);
  const pods = blockedPodsOf(finding);
  return {
    kind: kindOf(finding),
    ...(since === undefined ? {} : { since: since.toISOString() }),
    ...(pods.length === 0 ? {} : { blockedPods: pods.map((pod) => ({ ...pod })) }),
    ...(addresses === 0 ? {} : { blockedAddresses: addresses }),
  };
}

/** A ghost is about a sandbox; a leak is what is left without an owner. */
function kindOf({ class: classId, subject }: Finding): ReportedFinding["kind"] {
  if (classById(classId)?.category === "leak" || subject.type === "container") return "leak";
  return "sandboxId" in subject && subject.sandboxId !== undefined ? "ghost" : "other";
}

function blockedPodsOf({ blockedPods, blocks, subject }: Finding): NonNullable<Finding["blockedPods"]> {
  if (blockedPods !== undefined) return blockedPods;
  // A record in the database keeps the runtime from starting, not its pod alone.
  const pod = subject.type === "sandbox" || subject.type === "process" ? subject.pod : undefined;
  return pod === undefined || blocks.length === 0 ? [] : [{ namespace: pod.namespace, name: pod.name }];
}

function addressesOf({ cure }: Finding): number {
  return cure.reduce((sum, step) => {
    if (step.kind === "release-addresses") return sum + step.leases.length;
    return step.kind === "drop-empty-lease" ? sum + 1 : sum;
  }, 0);
}

/**
 * Since when it has been like this, as far as the node shows it: the latest of its creation, the end of its last
 * container, and the boot that it did not survive.
 */
function sinceOf({ subject }: Finding, view: NodeView): Date | undefined {
  const boot = valueOr(view.snapshot.boot, undefined);
  if (subject.type === "process") {
    const seconds = valueOr(view.snapshot.processes, undefined)?.plugins.find(
      ({ pid }) => pid === subject.pid,
    )?.ageSeconds;
    return seconds === undefined ? undefined : new Date(view.snapshot.observedAt.getTime() - seconds * 1000);
  }
  const times = timesOf(subject, view).filter((time) => time > 0 && time <= view.snapshot.observedAt.getTime());
  if (times.length === 0) return undefined;
  return new Date(Math.max(...times, boot?.startedAt.getTime() ?? 0));
}

function timesOf(subject: Finding["subject"], view: NodeView): readonly number[] {
  const { snapshot } = view;
  if (subject.type === "netns") {
    const entry = valueOr(snapshot.netns, []).find(({ path }) => path === subject.path);
    return entry === undefined ? [] : [entry.modifiedAt.getTime()];
  }
  if (subject.type === "lease") {
    const lease = valueOr(snapshot.containerd, undefined)?.leases.find(({ id }) => id === subject.name);
    return lease?.createdAt === undefined ? [] : [lease.createdAt.getTime()];
  }
  const id = "sandboxId" in subject ? subject.sandboxId : undefined;
  if (id === undefined) return subject.type === "file" ? fileTimes(subject.path, view) : [];
  const { sandbox, containers, record, storeRecord, leases, results, multus, flannel } = view.about(id);
  const ends = containers.map(({ exit, createdAt }) => milliseconds(exit?.finishedAt ?? createdAt));
  const known = [
    milliseconds(sandbox?.createdAt),
    ...ends,
    record?.createdAt?.getTime(),
    storeRecord?.createdAt?.getTime(),
  ];
  const times = known.flatMap((time) => (time !== undefined && time > 0 ? [time] : []));
  if (times.length > 0) return times;
  return [...leases, ...results, multus, flannel].flatMap((file) =>
    file === undefined ? [] : [file.modifiedAt.getTime()],
  );
}

function fileTimes(path: string, { snapshot }: NodeView): readonly number[] {
  const networks = valueOr(snapshot.cni.hostLocal, []);
  return networks.flatMap(({ leases }) =>
    leases.filter((lease) => lease.path === path).map((lease) => lease.modifiedAt.getTime()),
  );
}

function milliseconds(nanoseconds: bigint | undefined): number {
  return nanoseconds === undefined ? 0 : Number(nanoseconds / 1_000_000n);
}
