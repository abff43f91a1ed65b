import { read, type Source, valueOr } from "../host/source.ts";
import { type CriSigns, type Liveness, livenessOf, nodeSigns } from "../liveness/liveness.ts";
import type { Sandbox, Task } from "../snapshot/types/runtime.ts";
import { blockingResults, isBroken } from "./corrupt-files.ts";
import {
  containerInWords,
  endedInOrder,
  mayHaveEndedInOrder,
  networkReleased,
  runningSuccessor,
  wasNeverCreated,
} from "./ending.ts";
import type { Evidence, Kept } from "./finding.ts";
import type { KeptReason } from "./kept-reason.ts";
import { finishedPhase, isHeldInCluster, isKubeletAlive, isStatic, podPresence } from "./pod-presence.ts";
import { removalReports } from "./reports.ts";
import { runtimeReports } from "./runtime-reports.ts";
import type { AboutId, NodeView } from "./view.ts";

/** A sandbox that is proven dead, and Kubernetes' reason to keep it, if any. */
export interface Candidate {
  readonly sandbox: Sandbox;
  readonly about: AboutId;
  /** The proof of death, quoted by the class that explains it. */
  readonly evidence: readonly Evidence[];
  /** Set if the sandbox is kept on purpose: then only an obstacle to its removal makes it a finding. */
  readonly retained?: KeptReason;
}

interface Sorted {
  readonly candidates: readonly Candidate[];
  readonly kept: readonly Kept[];
}

/** Separates the sandboxes that may be ghosts from those that cannot be. */
export function sortSandboxes(view: NodeView): Sorted {
  const candidates: Candidate[] = [];
  const kept: Kept[] = [];
  const hasFailed = failedBefore(view);
  const node = nodeSigns(tasksIn(view), view.snapshot.processes);
  for (const sandbox of view.sandboxes) {
    const about = view.about(sandbox.id);
    const cri = criSigns(sandbox, about);
    if (cri.isReady) continue;
    const keep = (reason: KeptReason): void => {
      kept.push({ sandboxId: sandbox.id, pod: sandbox.pod, reason });
    };
    if (isOptedOut(sandbox, view)) {
      keep({ code: "opted-out" });
      continue;
    }
    const liveness = livenessOf({ id: sandbox.id, cri: read(cri) }, node);
    if (liveness.state === "alive") {
      keep({ code: "alive", liveness });
      continue;
    }
    if (liveness.state === "unproven") {
      keep({ code: "not-proven-dead", liveness });
      continue;
    }
    if (isPluginAtWork(about, view) && !(isDelAlone(about) && hasFailed(sandbox.id, about))) {
      keep({ code: isDelAlone(about) ? "network-teardown-in-flight" : "network-setup-in-flight" });
      continue;
    }
    const retained = reasonToRetain(sandbox, about, view);
    candidates.push({
      sandbox,
      about,
      evidence: evidenceOfDeath(liveness, about),
      retained,
    });
  }
  return { candidates, kept };
}

function tasksIn({ snapshot: { containerd } }: NodeView): Source<readonly Task[]> {
  return containerd.status === "read" ? read(containerd.value.tasks) : containerd;
}

function criSigns({ state }: Sandbox, { containers }: AboutId): CriSigns {
  return {
    isReady: state === "ready",
    containers: containers.map(({ id, name, state: one }) => ({ id, name, isRunning: one === "running" })),
  };
}

function evidenceOfDeath({ checked }: Liveness, { containers }: AboutId): readonly Evidence[] {
  const states = containers.map(containerInWords);
  const held = states.length === 0 ? "no container" : `container${states.length === 1 ? "" : "s"} ${states.join(", ")}`;
  return [
    { source: "cri", fact: `listed as NotReady, with ${held}` },
    { source: "processes", fact: "no shim and no process carries its id" },
    ...(checked.includes("task") ? [{ source: "containerd", fact: "no live task" }] : []),
  ];
}

const IGNORE = "unghost.dev/ignore";

/** Kubelet copies the pod's annotations into a sandbox when it creates it; the cluster has the current ones. */
export function isOptedOut({ labels, annotations, pod }: Sandbox, view: NodeView): boolean {
  return hasIgnoreMark(labels) || hasIgnoreMark(annotations) || isHeldInCluster(pod, view);
}

export function hasIgnoreMark(marks: Readonly<Record<string, string>>): boolean {
  return marks[IGNORE] === "true";
}

/**
 * A plugin works on it. A plugin that exceeds the grace period is a separate finding, and no reason to keep the
 * sandbox.
 */
function isPluginAtWork({ plugins }: AboutId, { policy }: NodeView): boolean {
  return plugins.some((plugin) => plugin.ageSeconds * 1000 < policy.inflightGraceMs);
}

function isDelAlone({ plugins }: AboutId): boolean {
  return plugins.every(({ cniCommand }) => cniCommand === "DEL");
}

function reasonToRetain(sandbox: Sandbox, about: AboutId, view: NodeView): KeptReason | undefined {
  // Kubelet fails to remove it, and the deletion of the pod waits for that.
  if (removalReports(sandbox, view).length > 0) return undefined;
  const successor = runningSuccessor(sandbox, view);
  if (successor !== undefined) return { code: "successor-running", attempt: successor.pod.attempt };
  // The logs of a pod that is gone from the cluster cannot be requested any more.
  if (view.snapshot.kubernetes.source === "api" && podPresence(sandbox, view) === "gone") return undefined;
  // The API has only a mirror of a static pod, and only kubelet starts it again.
  if (isStatic(sandbox) && !wasNeverCreated(sandbox)) return { code: "static-pod" };
  if (endedInOrder(about)) return { code: "containers-finished" };
  if (mayHaveEndedInOrder(about)) return { code: "container-ends-unread" };
  const phase = finishedPhase(sandbox, view);
  if (phase !== undefined) return { code: "pod-finished", phase, hasContainers: about.containers.length > 0 };
  const presence = podPresence(sandbox, view);
  if (presence === "gone" || about.containers.length === 0 || wasNeverCreated(sandbox)) return undefined;
  if (!networkReleased(about, view)) return undefined;
  if (presence === "known") return { code: "pod-known" };
  return isKubeletAlive(view) ? { code: "left-to-kubelet" } : undefined;
}

/**
 * Whether the removal of a sandbox is known to fail: the runtime or kubelet reported a failure, or a file that the
 * removal reads is unreadable. With frequent retries a plugin works on such a sandbox almost all the time, and never
 * succeeds.
 */
function failedBefore(view: NodeView): (id: string, about: AboutId) => boolean {
  let reported: ReadonlySet<string | undefined> | undefined;
  return (id, about) => {
    const notes = [about.multus, about.flannel].filter((file) => file !== undefined);
    if (blockingResults(about.results, view).length > 0 || notes.some(isBroken)) return true;
    reported ??= sandboxesThatFailedToEnd(view);
    return reported.has(id);
  };
}

function sandboxesThatFailedToEnd({ snapshot }: NodeView): ReadonlySet<string | undefined> {
  const failures = runtimeReports(snapshot).filter((report) => report.kind === "failed");
  const endings = failures.filter(({ operation }) => operation !== "run");
  return new Set(endings.map(({ sandboxId }) => sandboxId));
}

/**
 * A running kubelet replaces dead sandboxes within seconds of its start, and then keeps the old one for its logs. Only
 * a sandbox that is dead for longer than --min-age is stuck. The age counts from the later start of runtime and
 * kubelet, by the monotonic clock: for a sandbox that died with an earlier one that is how long it has been dead.
 */
export function isRecovering({ sandbox }: Pick<Candidate, "sandbox">, view: NodeView): boolean {
  const kubelet = valueOr(view.snapshot.processes, undefined)?.kubelet;
  if (kubelet === undefined || podPresence(sandbox, view) === "gone") return false;
  const { boot, runtime } = view.snapshot;
  if (boot.status !== "read") return true;
  const started = Math.max(kubelet.startedSecondsAfterBoot, runtime.process?.startedSecondsAfterBoot ?? 0);
  return (boot.value.uptimeSeconds - started) * 1000 < view.policy.minAgeMs;
}
