import { classById, classes } from "../classes/index.ts";
import type { Finding, Verdict } from "../evidence/finding.ts";
import { livenessOfStored } from "../evidence/liveness.ts";
import { storedSandboxes } from "../evidence/stored-records.ts";
import { type DiagnosisPolicy, viewOf } from "../evidence/view.ts";
import { absent, failed, read, type Source } from "../host/source.ts";
import type { ContainerdFacts } from "../node/types/runtime.ts";
import type { OfflineFacts, Snapshot } from "../node/types/snapshot.ts";
import { adviceFor, type Diagnosis, isAskedFor } from "./diagnose.ts";
import { toFinding } from "./from-logs.ts";

/** What will prevent the runtime from starting, and what it will bring back. Pure. */
export function diagnoseOffline(facts: OfflineFacts): readonly Finding[] {
  const { metadata } = facts;
  if (metadata.status !== "read") return [];
  const findings = classes.flatMap((failureClass) =>
    (failureClass.detectOffline?.(metadata.value, facts) ?? []).map((detected) => toFinding(failureClass, detected)),
  );
  // Damage of the file first: the records were read from it.
  return [...findings.filter(isAboutFile), ...findings.filter((finding) => !isAboutFile(finding))];
}

function isAboutFile({ subject }: Finding): boolean {
  return subject.type === "file";
}

/** A scan of a node whose runtime does not run, from its files. Pure. */
export function scanOffline(facts: OfflineFacts, settings: DiagnosisPolicy & { readonly node: string }) {
  const findings = diagnoseOffline(facts).filter((finding) => isAskedFor({ id: finding.class }, settings));
  const snapshot = offlineSnapshot(facts, settings.node);
  const notKnown = hiddenClasses(settings.only).map(
    (id) => `whether there is a ${id}: an offline scan does not show it; ask the runtime, without --offline`,
  );
  const verdict = verdictOf(facts, findings, settings);
  const diagnosis = { ...offlineDiagnosis(snapshot, findings, settings), verdict, notKnown };
  return { snapshot, diagnosis, sandboxes: sandboxCounts(facts) };
}

/** What is found without the runtime's answers: which sandboxes are dead, kept or pending is unknown. */
export function offlineDiagnosis(snapshot: Snapshot, findings: readonly Finding[], policy: DiagnosisPolicy): Diagnosis {
  return {
    verdict: findings.length > 0 ? "ghosts" : "unknown",
    findings,
    pending: [],
    podCreation: { able: "unknown", blockedPods: [] },
    kept: [],
    advice: adviceFor(snapshot, findings),
    dead: [],
    view: viewOf(snapshot, policy),
  };
}

const NOT_ASKED = "not asked: this is an offline scan";

/** In the form of a scan that asked the runtime. */
export function offlineSnapshot(facts: OfflineFacts, node: string): Snapshot {
  return {
    node,
    observedAt: facts.observedAt,
    boot: facts.boot,
    runtime: { endpoint: "", reachable: false, name: "containerd", version: facts.containerdVersion ?? "" },
    cri: absent(NOT_ASKED),
    containerd: containerdSource(facts),
    cni: { ...facts.cni, conf: absent(NOT_ASKED), multus: absent(NOT_ASKED), flannel: absent(NOT_ASKED) },
    netns: absent(NOT_ASKED),
    processes: facts.processes,
    logs: absent(NOT_ASKED),
    kubernetes: { source: "none" },
  };
}

/**
 * Without a database there is nothing to scan: offline that is a problem, and the next step is to pass its directory.
 */
function containerdSource({ metadata }: OfflineFacts): Source<ContainerdFacts> {
  if (metadata.status === "failed") return metadata;
  if (metadata.status === "absent") return failed(metadata.reason, "pass its directory with --containerd-root DIR");
  const { records, sandboxes, leases } = metadata.value;
  return read({ records, sandboxes, leases, tasks: [] }, metadata.oddities);
}

/** "Healthy" offline means: the runtime can start, and brings no dead sandbox back. */
function verdictOf(
  { metadata, processes, cni }: OfflineFacts,
  findings: readonly Finding[],
  { only }: DiagnosisPolicy,
): Verdict {
  if (findings.length > 0) return "ghosts";
  const unread =
    hiddenClasses(only).length > 0 || [processes, cni.results, cni.hostLocal].some(({ status }) => status === "failed");
  return metadata.status === "read" && !unread ? "healthy" : "unknown";
}

/** The classes of --only that need the runtime's answers. */
function hiddenClasses(only: DiagnosisPolicy["only"]): readonly string[] {
  return only.filter((id) => classById(id)?.detectOffline === undefined);
}

/** As they will be listed after the start: those with a live process are ready. */
function sandboxCounts({ metadata, processes }: OfflineFacts) {
  if (metadata.status !== "read") return { total: 0, ready: 0, notReady: 0 };
  const ids = [...storedSandboxes(metadata.value).keys()];
  const ready = ids.filter((id) => livenessOfStored(id, metadata.value, processes).state === "alive").length;
  return { total: ids.length, ready, notReady: ids.length - ready };
}
