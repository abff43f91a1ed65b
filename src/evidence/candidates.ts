import { read, type Source, valueOr } from "../host/source.ts";
import type { Sandbox, Task } from "../node/types/runtime.ts";
import {
  containerInWords,
  endedInOrder,
  mayHaveEndedInOrder,
  networkReleased,
  runningSuccessor,
  wasNeverCreated,
} from "./ending.ts";
import { type Evidence, type Kept, type KeptCode, type Reason, reason } from "./finding.ts";
import { type CriSigns, type Liveness, livenessOf, nodeSigns } from "./liveness.ts";
import { livenessInWords } from "./liveness-words.ts";
import { hasOutlivedRuntime } from "./outlived-plugins.ts";
import { finishedPhase, isHeldInCluster, isKubeletAlive, isStatic, podPresence } from "./pod-presence.ts";
import { removalReports, runtimeReports } from "./reports.ts";
import { blockingResults, isBroken } from "./sandbox-detected.ts";
import type { AboutId, NodeView } from "./view.ts";

/** A sandbox that is proven dead, and Kubernetes' reason to keep it, if any. */
export interface Candidate {
  readonly sandbox: Sandbox;
  readonly about: AboutId;
  /** The proof of death, quoted by the class that explains it. */
  readonly evidence: readonly Evidence[];
  /** Set if the sandbox is kept on purpose: then only an obstacle to its removal makes it a finding. */
  readonly retained?: Reason<KeptCode>;
  /** The API server has no such pod: nothing waits for the sandbox's name, which contains the uid. */
  readonly isPodGone: boolean;
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
    const keep = (why: Reason<KeptCode>): void => {
      kept.push({ sandboxId: sandbox.id, pod: sandbox.pod, reason: why });
    };
    if (isOptedOut(sandbox, view)) {
      keep(reason("opted-out", "opted out by unghost.dev/ignore"));
      continue;
    }
    const liveness = livenessOf({ id: sandbox.id, cri: read(cri) }, node);
    if (liveness.state === "alive") {
      keep(reason("alive", `not dead: ${livenessInWords(liveness)}`));
      continue;
    }
    if (liveness.state === "unproven") {
      keep(reason("not-proven-dead", `not proven dead: ${livenessInWords(liveness)}`));
      continue;
    }
    if (isPluginAtWork(about, view) && !(isDelAlone(about) && hasFailed(sandbox.id, about))) {
      keep(
        isDelAlone(about)
          ? reason("network-teardown-in-flight", "its network is being taken down right now")
          : reason("network-setup-in-flight", "its network is still being set up"),
      );
      continue;
    }
    const retained = reasonToRetain(sandbox, about, view);
    const isPodGone = isGoneFromCluster(sandbox, view);
    candidates.push({ sandbox, about, evidence: evidenceOfDeath(liveness, about), retained, isPodGone });
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

function evidenceOfDeath({ checked }: Liveness, { containers, plugins }: AboutId): readonly Evidence[] {
  const states = containers.map(containerInWords);
  const held = states.length === 0 ? "no container" : `container${states.length === 1 ? "" : "s"} ${states.join(", ")}`;
  return [
    { source: "cri", fact: `listed as NotReady, with ${held}` },
    { source: "processes", fact: `no shim and no process carries its id${pluginsInWords(plugins)}` },
    ...(checked.includes("task") ? [{ source: "containerd", fact: "no live task" }] : []),
  ];
}

function pluginsInWords(plugins: AboutId["plugins"]): string {
  const calls = plugins.map(({ cniCommand, pid, command }) => `the CNI ${cniCommand} in pid ${pid} (${command})`);
  return calls.length === 0 ? "" : `, except for ${calls.join(", ")}`;
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
function isPluginAtWork({ plugins }: AboutId, view: NodeView): boolean {
  const { inflightGraceMs } = view.policy;
  return plugins.some((plugin) => plugin.ageSeconds * 1000 < inflightGraceMs && !hasOutlivedRuntime(plugin, view));
}

function isGoneFromCluster(sandbox: Sandbox, view: NodeView): boolean {
  return view.snapshot.kubernetes.source === "api" && podPresence(sandbox, view) === "gone";
}

function isDelAlone({ plugins }: AboutId): boolean {
  return plugins.every(({ cniCommand }) => cniCommand === "DEL");
}

function reasonToRetain(sandbox: Sandbox, about: AboutId, view: NodeView): Reason<KeptCode> | undefined {
  // Kubelet fails to remove it, and the deletion of the pod waits for that.
  if (removalReports(sandbox, view).length > 0) return undefined;
  const successor = runningSuccessor(sandbox, view);
  if (successor !== undefined) {
    const { attempt } = successor.pod;
    return reason(
      "successor-running",
      `the pod runs again under attempt ${attempt}; this one holds the containers behind kubectl logs --previous`,
    );
  }
  // The logs of a pod that is gone from the cluster cannot be requested any more.
  if (isGoneFromCluster(sandbox, view)) return undefined;
  // The API has only a mirror of a static pod, and only kubelet starts it again.
  if (isStatic(sandbox) && !wasNeverCreated(sandbox))
    return reason("static-pod", "a static pod: kubelet creates it again from its manifest");
  if (endedInOrder(about)) {
    return reason(
      "containers-finished",
      "a finished pod: its containers ended in an orderly way, and kubectl logs still reads them",
    );
  }
  if (mayHaveEndedInOrder(about)) {
    return reason("container-ends-unread", "how its containers ended could not be read: it may be a finished pod");
  }
  const phase = finishedPhase(sandbox, view);
  if (phase !== undefined) {
    const logs = about.containers.length > 0 ? "kubectl logs still reads its containers" : "no pod waits for its name";
    return reason("pod-finished", `a finished pod: Kubernetes calls it ${phase}, and ${logs}`);
  }
  const presence = podPresence(sandbox, view);
  if (presence === "gone" || about.containers.length === 0 || wasNeverCreated(sandbox)) return undefined;
  if (!networkReleased(about, view)) return undefined;
  if (presence === "known") {
    return reason(
      "pod-known",
      "Kubernetes still knows the pod, and its network is released; kubectl logs still reads its containers",
    );
  }
  if (!isKubeletAlive(view)) return undefined;
  return reason(
    "left-to-kubelet",
    "its pod is unknown (no API server, no kubelet directory), and its network is released; the rest is left to kubelet, which runs",
  );
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
  const endings = failures.filter(({ operation }) => operation !== "create-sandbox");
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
