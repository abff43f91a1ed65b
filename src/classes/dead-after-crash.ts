import { type Candidate, isRecovering } from "../evidence/candidates.ts";
import {
  containerInWords,
  endedInOrder,
  endWasLost,
  isNetnsGone,
  networkStillHeld,
  predatesStart,
  wasNeverCreated,
} from "../evidence/ending.ts";
import type { Detected, Evidence } from "../evidence/finding.ts";
import { livenessOfStored } from "../evidence/liveness.ts";
import { isKubeletAlive, isTerminating } from "../evidence/pod-presence.ts";
import { removalReports } from "../evidence/reports.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";
import { MAX_LISTED, storedSandboxes } from "../evidence/stored-records.ts";
import type { AboutId, NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { durationInWords } from "../host/text.ts";
import type { CniFacts } from "../node/types/cni.ts";
import { parseSandboxName } from "../node/types/ids.ts";
import type { Sandbox } from "../node/types/runtime.ts";
import type { MetadataFile, OfflineFacts } from "../node/types/snapshot.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const deadAfterCrash: ClassDefinition = {
  id: "dead-after-crash",
  code: "S1",
  title: "Sandbox that died with the node",
  explanation:
    "The node lost power or froze, and this sandbox died with it. The runtime lists it as NotReady, still keeps its name and its address, and nothing has cleaned it up: its pod is gone or lives elsewhere, or no kubelet is there to do it. Nothing prevents its removal.",
  mechanism:
    "After a restart the runtime rebuilds its list from its database, finds no task, and sets the sandbox NotReady with its name reserved. Result cache and address file survive on disk. RemovePodSandbox frees all three.",
  inSnapshot:
    "NotReady, created before the machine's or the runtime's current start, its containers absent or ended with 255 Unknown (CRI-O: -1), no task, no shim, and no reason to keep it.",
  versions: {
    since: "every release of any runtime",
    until: "open",
    ends: "No upgrade: `unghost boot` removes them before pods start.",
    note: "CRI-O removes them automatically after a reboot, and keeps them when only its own processes died.",
  },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: [
      "Save the logs of containers that would go with it.",
      "Stop the sandbox over CRI, which frees network and address.",
      "Remove it, which releases the name.",
    ],
    gates: [
      "The sandbox is dead: NotReady in list and status, no container running, no task, no shim or pause process.",
      "Its pod is gone from the API, has another uid or lives on another node; or there is neither API nor kubelet to ask.",
      "It is older than the minimum age, by boot identity or monotonic first sight.",
    ],
  },
  byHand: [
    "crictl pods --state NotReady, and compare each with kubectl get pod -A -o wide.",
    "crictl stopp <id> && crictl rmp <id> for those whose pod is gone.",
  ],
  danger:
    "NotReady alone proves nothing: the kubelet keeps the last sandbox of every finished pod for its logs (N1). Removing everything NotReady on a timer has made outages worse.",
  links: ["containerd/cri#1014", "k3s-io/k3s#5189", "shunkakinoki/dotfiles/pull/2120"],
  detect,
  detectOffline,
  healedAfterStart: (facts) => comingBack(facts).map(({ id }) => id),
  drivesCrashLoops: true,
  adopts: "interrupted-removals",
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  return candidates.flatMap((candidate) => {
    const { retained, about, sandbox } = candidate;
    if (retained !== undefined || wasStoppedOrderly(about, view) || isRecovering(candidate, view)) return [];
    if (isBeingDeleted(sandbox, view)) return [];
    const evidence = proofOfSuddenEnd(candidate, view);
    if (evidence.length === 0) return [];
    return [
      sandboxDetected(candidate, {
        summary:
          "it died with the node or its runtime and was never taken down: its name, and what is left of its network, stay taken",
        evidence,
      }),
    ];
  });
}

/**
 * Created since the start of machine and runtime, and kubelet is deleting it: whatever blocks that, it did not end in a
 * crash.
 */
function isBeingDeleted(sandbox: Sandbox, view: NodeView): boolean {
  if (wasNeverCreated(sandbox) || predatesStart(sandbox, view) !== undefined) return false;
  return (isKubeletAlive(view) && isTerminating(sandbox, view)) || removalReports(sandbox, view).length > 0;
}

function proofOfSuddenEnd({ sandbox, about }: Candidate, view: NodeView): Evidence[] {
  const evidence: Evidence[] = [];
  const lost = about.containers.filter(endWasLost);
  if (lost.length > 0) {
    evidence.push({ source: "cri", fact: `no exit was recorded: ${lost.map(containerInWords).join(", ")}` });
  }
  // A DEL without the plugin's cache leaves the address of an orderly stopped pod.
  if (!endedInOrder(about) && lostItsNetns(about, view)) {
    evidence.push({
      source: "netns",
      fact: "its network namespace is gone, and its network was not taken down before",
    });
  }
  const start = predatesStart(sandbox, view);
  if (start === "machine") evidence.push({ source: "boot", fact: "it was made before the machine last started" });
  if (start === "runtime") {
    const up = durationInWords(view.runtimeUpSeconds ?? 0);
    evidence.push({ source: "processes", fact: `it was made before the runtime last started, ${up} ago` });
  }
  const held = networkStillHeld(about, view);
  if (evidence.length > 0 && held !== undefined) evidence.push({ source: "cni", fact: held });
  return evidence;
}

/**
 * Whether the network namespace disappeared before the network was torn down. A stop does it in reverse order, so the
 * machine was restarted in between. Needs no clock.
 */
function lostItsNetns(about: AboutId, view: NodeView): boolean {
  return isNetnsGone(about, view) && networkStillHeld(about, view) !== undefined;
}

/**
 * Stopped orderly: it had a network, nothing of it is left, and no container was lost. A later restart of the runtime
 * did not kill it.
 */
function wasStoppedOrderly(about: AboutId, view: NodeView): boolean {
  const hadNetwork = about.metadata?.hasCniResult === true;
  return hadNetwork && networkStillHeld(about, view) === undefined && !about.containers.some(endWasLost);
}

/** One finding for all of them: which one is stuck is known only after the runtime's start. */
function detectOffline(file: MetadataFile, facts: OfflineFacts): readonly Detected[] {
  const back = comingBack(facts);
  if (back.length === 0) return [];
  const names = back.map(({ podName }) => podName).toSorted();
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : "";
  const holding = back.filter(({ holdsNetwork }) => holdsNetwork).length;
  const evidence: Evidence[] = [
    {
      source: "metadata file",
      fact: `records without a live process: ${names.slice(0, MAX_LISTED).join(", ")}${more}`,
    },
  ];
  if (holding > 0)
    evidence.push({ source: "cni", fact: `${holding} of them still hold an address or a cached result` });
  return [
    {
      severity: "warning",
      subject: { type: "node", path: file.path },
      summary: `${back.length === 1 ? "1 stored sandbox is" : `${back.length} stored sandboxes are`} dead and not taken down: the next start of the runtime brings them back NotReady, with their names taken`,
      evidence,
    },
  ];
}

/**
 * Stored sandboxes that the next start of the runtime brings back NotReady, with their names reserved: those without a
 * live process, except for orderly stopped ones, which had a network, and nothing of it is left. Empty if processes
 * could not be read: nothing is dead without proof.
 */
function comingBack({ metadata, processes, cni }: OfflineFacts) {
  if (metadata.status !== "read" || processes.status !== "read") return [];
  const holders = networkHolders(cni);
  return [...storedSandboxes(metadata.value)].flatMap(([id, { name, hasCniResult }]) => {
    const holdsNetwork = holders.has(id);
    const wasTornDown = hasCniResult && !holdsNetwork;
    const isDead = livenessOfStored(id, metadata.value, processes).state === "dead";
    return isDead && !wasTornDown ? [{ id, podName: podNameIn(name), holdsNetwork }] : [];
  });
}

function networkHolders({ results, hostLocal }: Pick<CniFacts, "results" | "hostLocal">): ReadonlySet<string> {
  const leases = valueOr(hostLocal, []).flatMap((network) => network.leases);
  return new Set([
    ...valueOr(results, []).map(({ sandboxId }) => sandboxId),
    ...leases.flatMap(({ owner }) => (owner === undefined ? [] : [owner.id])),
  ]);
}

function podNameIn(name: string): string {
  const pod = parseSandboxName(name);
  return pod === undefined ? name : `${pod.namespace}/${pod.name}`;
}
