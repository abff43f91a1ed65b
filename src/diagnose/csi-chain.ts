import { type Finding, namedPods, podOf, sandboxIdOf } from "../evidence/finding.ts";
import { isAboutVolumes } from "../evidence/reports.ts";
import type { Step } from "../evidence/step.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { CsiSocket, KnownPod, Kubernetes, PodEvent, UnattachedVolume } from "../node/types/snapshot.ts";
import { eventEvidence } from "./from-logs.ts";

/** One finding must not restart a whole node: pods beyond this number restart by their own back-off. */
const MAX_RESTARTED = 10;
const MAX_QUOTED = 3;

/**
 * A ghost on a CSI node plugin blocks the volumes of the whole node: the plugin cannot start, its socket is missing,
 * sidecars crash, volumes cannot attach, workloads wait. The ghost's finding covers the whole chain, and its
 * consequences are no separate findings.
 */
export function asCsiChains(findings: readonly Finding[], view: NodeView): readonly Finding[] {
  const chains = new Map(
    findings.flatMap((finding) => {
      const chain = chainOf(finding, view);
      return chain === undefined ? [] : [[finding.id, chain]];
    }),
  );
  if (chains.size === 0) return findings;
  const consequences = new Set([...chains.values()].flatMap(({ attachments }) => attachments));
  return findings
    .filter(({ subject }) => subject.type !== "volume-attachment" || !consequences.has(subject.name))
    .map((finding) => {
      const chain = chains.get(finding.id);
      return chain === undefined ? finding : describe(finding, chain);
    });
}

interface Chain {
  readonly plugin: Pick<KnownPod, "namespace" | "name">;
  readonly sockets: readonly CsiSocket[];
  /** Names of the VolumeAttachments that wait for this driver. */
  readonly attachments: readonly string[];
  readonly crashing: readonly KnownPod[];
  /** Pods of the driver that were lost with the node and are about to crash: no crash was observed yet. */
  readonly down: readonly KnownPod[];
  readonly waiting: readonly KnownPod[];
  readonly events: readonly PodEvent[];
  readonly node: string;
}

function chainOf({ subject }: Finding, view: NodeView): Chain | undefined {
  const { kubernetes, csi, node } = view.snapshot;
  const pod = podOf(subject);
  if (csi === undefined || pod === undefined) return undefined;
  // A pod that runs again has its socket back, or another problem.
  if (view.sandboxesOfPod.get(pod.uid)?.some(({ state }) => state === "ready")) return undefined;
  const silent = valueOr(csi, []).filter(({ state }) => state !== "listening");
  if (kubernetes.source !== "api") {
    const registered = silent.filter((socket) => socket.registered);
    if (registered.length === 0 || !hasRegistrar(subject, view)) return undefined;
    return { plugin: pod, sockets: registered, attachments: [], crashing: [], down: [], waiting: [], events: [], node };
  }
  const plugin = kubernetes.pods.find(({ uid }) => uid === pod.uid);
  if (plugin === undefined) return undefined;
  const sockets = silent.filter((socket) => isPluginOf(plugin, socket, kubernetes.pods));
  if (sockets.length === 0) return undefined;
  return { plugin, sockets, ...affectedBy(plugin, sockets, kubernetes, view), node: kubernetes.nodeName ?? node };
}

/**
 * By the pod's mounts or the cluster's CSINode. A plugin that registers itself may be in neither: then it is the only
 * DaemonSet pod with the directory of a driver that is registered with kubelet.
 */
function isPluginOf({ csi, controller }: KnownPod, { dir, registered }: CsiSocket, pods: readonly KnownPod[]): boolean {
  if (csi?.dirs.includes(dir) !== true) return false;
  if (csi.registers) return true;
  const others = pods.filter((pod) => pod.csi?.dirs.includes(dir));
  const isOnly = others.filter((pod) => pod.controller === "DaemonSet" || pod.csi?.registers).length === 1;
  return registered && controller === "DaemonSet" && isOnly;
}

/** Without an API that returns a pod's mounts, its containers' names decide. */
function hasRegistrar(subject: Finding["subject"], view: NodeView): boolean {
  const id = sandboxIdOf(subject);
  return id !== undefined && view.about(id).containers.some(({ name }) => name.includes("registrar"));
}

function affectedBy(
  plugin: KnownPod,
  sockets: readonly CsiSocket[],
  kubernetes: Extract<Kubernetes, { source: "api" }>,
  view: NodeView,
): Pick<Chain, "attachments" | "crashing" | "down" | "waiting" | "events"> {
  const drivers = sockets.map(({ driver }) => driver);
  const others = kubernetes.pods.filter(({ uid }) => uid !== plugin.uid);
  const unattached = (kubernetes.unattached ?? []).filter(
    ({ attacher, awaited }) => drivers.includes(attacher) && awaited !== true,
  );
  const events = (kubernetes.events ?? []).filter((event) => isAboutVolumes(event) && names(event, drivers));
  const mounts = (pod: KnownPod, claim: UnattachedVolume["claim"]): boolean =>
    claim !== undefined && claim.namespace === pod.namespace && pod.claims?.includes(claim.name) === true;
  const isWaiting = (pod: KnownPod): boolean =>
    events.some((event) => event.pod === pod.name && event.namespace === pod.namespace) ||
    unattached.some(({ claim }) => mounts(pod, claim));
  const dependent = others.filter((pod) => sockets.some(({ dir }) => pod.csi?.dirs.includes(dir)));
  const crashing = dependent.filter((pod) => isCrashing(pod, view.snapshot.observedAt));
  return {
    attachments: unattached.map(({ name }) => name),
    crashing,
    // A Job's pod may have ended permanently: its logs are worth more than its restart.
    down: dependent.filter((pod) => !crashing.includes(pod) && pod.controller !== "Job" && isDown(pod, view)),
    waiting: others.filter(isWaiting),
    events,
  };
}

/** Kubelet logs "driver name x not found in the list of registered CSI drivers"; the attacher names the volume. */
function names({ message }: PodEvent, drivers: readonly string[]): boolean {
  return drivers.some((driver) => message.includes(driver));
}

/** Kubelet's longest back-off is five minutes: a container that ended longer ago has recovered. */
const CRASH_WINDOW_MS = 600_000;

/** By its last end with an error: between two ends it may run for seconds or wait for minutes. */
function isCrashing({ crash, waiting }: KnownPod, now: Date): boolean {
  if (waiting?.includes("CrashLoopBackOff")) return true;
  if (crash === undefined) return false;
  return crash.down || (crash.endedAt !== undefined && now.getTime() - crash.endedAt.getTime() < CRASH_WINDOW_MS);
}

/**
 * From the runtime: after a power cut the API shows the old state for a while, and a container that was just started
 * has not crashed yet.
 */
function isDown({ uid }: KnownPod, view: NodeView): boolean {
  const sandboxes = view.sandboxesOfPod.get(uid) ?? [];
  const ready = sandboxes.filter(({ state }) => state === "ready");
  if (ready.length === 0) return sandboxes.length > 0;
  const containers = ready.flatMap(({ id }) => view.about(id).containers);
  return containers.length > 0 && containers.every(({ state }) => state === "exited" || state === "unknown");
}

function describe(finding: Finding, chain: Chain): Finding {
  const { plugin, sockets, crashing, down, waiting, events } = chain;
  const drivers = sockets.map(({ driver }) => driver).join(", ");
  const links = [
    `so the CSI node plugin of ${drivers} cannot start`,
    `no process listens on ${sockets.map(({ path }) => path).join(", ")}`,
    ...(crashing.length === 0 ? [] : [`${crashing.length} crash-looping without it`]),
    ...(waiting.length === 0 ? [] : [`${waiting.length} waiting for volumes`]),
  ];
  return {
    ...finding,
    severity: "critical",
    summary: `${finding.summary}; ${links.join(", ")}`,
    evidence: [
      ...finding.evidence,
      ...sockets.map(({ path, state }) => ({
        source: "csi",
        fact: state === "missing" ? `${path} does not exist` : `${path} exists, and no process listens on it`,
      })),
      ...events.slice(0, MAX_QUOTED).map(eventEvidence),
    ],
    blocks: [
      ...finding.blocks,
      `CSI driver ${drivers}: its node plugin ${nameOf(plugin)} cannot start`,
      ...crashing.map((pod) => `pod ${nameOf(pod)}: crash-loops without the driver's socket`),
      ...down.map((pod) => `pod ${nameOf(pod)}: is down, and needs the driver's socket to run again`),
      ...waiting.map((pod) => `pod ${nameOf(pod)}: waits for a volume of the driver`),
    ],
    blockedPods: [...(finding.blockedPods ?? []), ...namedPods([...crashing, ...waiting])],
    followUps: restartsOf(chain),
    missingSockets: sockets.map(({ path }) => path),
    aftermath: mountsToCome(waiting.filter((pod) => !hasFreshVolumes(pod))),
  };
}

/** With the socket back, pods that crashed without it need not wait for a back-off of minutes. */
function restartsOf({ sockets, crashing, down, waiting, node }: Chain): readonly Step[] {
  const mounting = waiting.filter(hasFreshVolumes);
  const restarts = [...crashing, ...down, ...mounting]
    .filter(
      ({ controller, ignored, terminating }) => controller !== undefined && ignored !== true && terminating !== true,
    )
    // A mirror pod cannot be deleted: its static pod would continue.
    .filter(({ objectUid }) => objectUid === undefined)
    .slice(0, MAX_RESTARTED)
    .map((pod): Step => {
      const { namespace = "", name = "", uid } = pod;
      return {
        kind: "kick-pod",
        namespace,
        name,
        uid,
        node,
        mayCrash: down.includes(pod) || undefined,
        waitsForVolumes: mounting.includes(pod) || undefined,
      };
    });
  if (restarts.length === 0) return [];
  return [...sockets.map(({ path }): Step => ({ kind: "await-socket", path })), ...restarts];
}

/**
 * Kubelet doubles its back-off after each failed mount up to 2 min 2 s, and keeps it in memory by volume: neither a new
 * pod nor a new attachment resets it, and a restart of kubelet would do more harm than the wait. For a volume of the pod
 * alone it ends with the pod.
 */
const LONGEST_MOUNT_PAUSE_MS = 122_000;

function hasFreshVolumes({ ownVolumes, controller, phase }: KnownPod): boolean {
  return ownVolumes === true && controller !== undefined && phase === "Pending";
}

function mountsToCome(waiting: readonly KnownPod[]): Finding["aftermath"] {
  if (waiting.length === 0) return undefined;
  const pods = waiting.slice(0, MAX_QUOTED).map(nameOf).join(", ");
  const more = waiting.length > MAX_QUOTED ? ` and ${waiting.length - MAX_QUOTED} more` : "";
  const text = `once the driver is back, kubelet mounts the volumes of ${pods}${more} at its next retry, up to 2m2s later`;
  return { text, withinMs: LONGEST_MOUNT_PAUSE_MS };
}

function nameOf({ namespace = "", name = "" }: Pick<KnownPod, "namespace" | "name">): string {
  return `${namespace}/${name}`;
}
