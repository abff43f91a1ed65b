import type { Category, Classified, FailureClass } from "../classes/failure-class.ts";
import { classById, classes } from "../classes/index.ts";
import { unreadAddressStores } from "../evidence/address-stores.ts";
import { withoutDeletedPods } from "../evidence/affected-pods.ts";
import { type Candidate, sortSandboxes } from "../evidence/candidates.ts";
import {
  type Finding,
  type Kept,
  type KeptCode,
  type Reason,
  reason,
  type Subject,
  sandboxIdOf,
  type Verdict,
} from "../evidence/finding.ts";
import type { Pending, PodCreation } from "../evidence/pending.ts";
import { keptWhileCreated } from "../evidence/sandbox-creations.ts";
import { type ContainerdBehaviour, containerdBehaviour, crioBehaviour } from "../evidence/versions.ts";
import { type DiagnosisPolicy, type NodeView, viewOf } from "../evidence/view.ts";
import type { SandboxId } from "../node/types/ids.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import { asCsiChains } from "./csi-chain.ts";
import { type Named, namedByLogs, toFinding, withEventEvidence, withLogEvidence } from "./from-logs.ts";
import { pendingOn } from "./pending.ts";
import { podCreationOn, verdictOf } from "./verdict.ts";

export interface Diagnosis {
  readonly verdict: Verdict;
  readonly findings: readonly Finding[];
  /** What is in flight, retried or failing and not yet proven stuck. */
  readonly pending: readonly Pending[];
  readonly podCreation: PodCreation;
  readonly kept: readonly Kept[];
  readonly advice: readonly string[];
  /** What may be wrong and no source of this node shows. */
  readonly notKnown?: readonly string[];
  /** Every sandbox that is proven dead, with or without a finding. */
  readonly dead: readonly Candidate[];
  /** The joined facts behind the findings, for planning. */
  readonly view: NodeView;
  /** Of a selection: findings about other subjects that block the selected pods. */
  readonly alsoBlocking?: readonly Finding[];
}

/** Detects causes of one kind among the dead sandboxes that are not explained yet, and on the rest of the node. */
type Detector = (view: NodeView, unexplained: readonly Candidate[]) => readonly Named[];

/**
 * Causes before consequences: a cause of a failing removal explains an incomplete sandbox better than the fact that it
 * is incomplete, a report in the logs explains more than that it is dead, and "died in a crash" explains the rest.
 */
const DETECTORS: readonly Detector[] = [
  ...detectorsWhere(({ blocksEveryCall }) => blocksEveryCall === true),
  ...detectorsOf("removal-fails"),
  ...detectorsOf("creation-blocked"),
  ...detectorsOf("leak"),
  ...detectorsOf("runtime-down"),
  ...detectorsOf("other-runtime"),
  namedByLogs,
  ...detectorsOf("left-behind"),
  ...detectorsOf("storage"),
];

function detectorsOf(category: Category): readonly Detector[] {
  return detectorsWhere((failureClass) => failureClass.category === category && failureClass.blocksEveryCall !== true);
}

function detectorsWhere(isWanted: (failureClass: FailureClass) => boolean): readonly Detector[] {
  return classes.flatMap((failureClass) => {
    const { detect } = failureClass;
    if (detect === undefined || !isWanted(failureClass)) return [];
    return [(view, unexplained) => detect(view, unexplained).map((detected) => ({ failureClass, detected }))];
  });
}

/**
 * Pure: snapshot in, findings out. A sandbox that one class has explained is not a finding of another: one cause, one
 * finding.
 */
export function diagnose(snapshot: Snapshot, policy: DiagnosisPolicy): Diagnosis {
  const view = viewOf(snapshot, policy);
  const { candidates: dead, kept } = sortSandboxes(view);
  const explained = new Map<SandboxId, FailureClass>();
  const findings: Finding[] = [];
  let unexplained = dead;
  for (const detect of DETECTORS) {
    const fresh = detect(view, unexplained).filter(
      ({ detected }) => !idsOf(detected.subject).some((id) => explained.has(id)),
    );
    if (fresh.length === 0) continue;
    for (const { failureClass, detected } of fresh) {
      for (const id of [...idsOf(detected.subject), ...(detected.explains ?? [])]) explained.set(id, failureClass);
      if (isAskedFor(failureClass, policy)) findings.push(toFinding(failureClass, detected));
    }
    unexplained = unexplained.filter(({ sandbox }) => !explained.has(sandbox.id));
  }
  const pending = pendingOn(view, new Set(explained.keys()));
  const failing = new Set(pending.flatMap((one) => (one.reason === "removal-failing" ? [one.sandboxId] : [])));
  // A sandbox that kubelet fails to remove is not kept on purpose: it is pending.
  const notStuck = unexplained
    .filter(({ sandbox }) => !failing.has(sandbox.id))
    .map((candidate) => toKept(candidate, NOT_STUCK));
  const leftOut = dead.flatMap((candidate) => {
    const by = explained.get(candidate.sandbox.id);
    return by === undefined || isAskedFor(by, policy)
      ? []
      : [toKept(candidate, reason("class-not-selected", `${by.id} was not asked for`))];
  });
  const chained = asCsiChains(withEventEvidence(withLogEvidence(findings, view), view), view).map((finding) =>
    withoutDeletedPods(finding, view),
  );
  return {
    verdict: verdictOf(view, findings, pending),
    findings: [...chained, ...amongFindings(chained, view)],
    pending,
    podCreation: podCreationOn(view, pending, findings),
    kept: [...kept, ...leftOut, ...notStuck, ...keptWhileCreated(view)],
    advice: adviceFor(snapshot, findings),
    notKnown: unreadAddressStores(view),
    dead,
    view,
  };
}

/** What the findings of all other classes show together. */
function amongFindings(findings: readonly Finding[], view: NodeView): readonly Finding[] {
  const classified = findings.flatMap((finding): Classified[] => {
    const failureClass = classById(finding.class);
    return failureClass === undefined ? [] : [{ failureClass, finding }];
  });
  return classes
    .filter((failureClass) => isAskedFor(failureClass, view.policy))
    .flatMap((failureClass) =>
      (failureClass.detectAmong?.(classified, view) ?? []).map((detected) => toFinding(failureClass, detected)),
    );
}

/** Dead, and unexplained. */
export const NOT_STUCK = reason(
  "not-stuck",
  "dead, but nothing shows that it is stuck: kubelet removes it when it gets to it",
);

function idsOf(subject: Subject): readonly SandboxId[] {
  const id = sandboxIdOf(subject);
  return id === undefined ? [] : [id];
}

export function isAskedFor({ id }: Pick<FailureClass, "id">, { only, skip }: DiagnosisPolicy): boolean {
  return (only.length === 0 || only.includes(id)) && !skip.includes(id);
}

function toKept({ sandbox, retained }: Candidate, otherwise: Reason<KeptCode>): Kept {
  return { sandboxId: sandbox.id, pod: sandbox.pod, reason: retained ?? otherwise };
}

/** Which upgrade prevents which class here: for the runtime by its version, for others by the findings. */
export function adviceFor({ runtime }: Snapshot, findings: readonly Finding[]): readonly string[] {
  const seen = new Set(findings.map((finding) => finding.class));
  const ofClasses = [...seen].flatMap((id) => classById(id)?.prevention?.(runtime) ?? []);
  return [...aboutRuntime(runtime, seen.size > 0), ...ofClasses];
}

function aboutRuntime({ name, version }: Snapshot["runtime"], hasFindings: boolean): readonly string[] {
  if (name.startsWith("containerd")) {
    const behaviour = containerdBehaviour(version);
    return behaviour === undefined ? [] : aboutContainerd(version, behaviour, hasFindings);
  }
  const isCrio = /^cri-?o/i.test(name);
  if (!isCrio || crioBehaviour(version)?.delErrorBlocks !== true) return [];
  return [
    `CRI-O ${version}: a failing CNI DEL blocks the removal of a sandbox forever. From 1.32.8, 1.33.4 and 1.34.0 on the second stop passes.`,
  ];
}

function aboutContainerd(version: string, behaviour: ContainerdBehaviour, hasFindings: boolean): readonly string[] {
  const advice: string[] = [];
  if (behaviour.stop === "del-error-blocks") {
    advice.push(
      `containerd ${version}: a failing CNI DEL blocks the removal of a sandbox forever, even when its network was never set up. From 1.6.37, 1.7.31 and 2.0.8 on it does so only when the network had been set up.`,
    );
  }
  if (behaviour.stop === "del-skipped-without-result" && hasFindings) {
    advice.push(
      `containerd ${version}: a sandbox whose network set-up did not finish is removed without CNI DEL, which leaks addresses. Fixed in 1.7.31, 2.0.8, 2.1.7 and 2.2.2.`,
    );
  }
  if (behaviour.fatalWithoutMetadata) {
    advice.push(
      `containerd ${version}: a crash in the wrong moment keeps it from starting again ("failed to get metadata for stored sandbox"). Fixed in 2.0.6, 2.1.4 and 2.2.0.`,
    );
  }
  return advice;
}
