import { isOptedOut } from "../classes/candidates.ts";
import { endWasLost, predatesStart, wasNeverCreated } from "../classes/ending.ts";
import type { Finding } from "../classes/finding.ts";
import { namesHeldInLogs } from "../classes/name-locks.ts";
import { podTruth } from "../classes/pod-truth.ts";
import { isRecovering } from "../classes/recovering.ts";
import type { Step } from "../classes/step.ts";
import type { AboutId, NodeView } from "../classes/view.ts";
import type { Diagnosis } from "../diagnose/diagnose.ts";
import type { SandboxId } from "../snapshot/ids.ts";
import { valueOr } from "../snapshot/source.ts";
import type { Sandbox } from "../snapshot/types.ts";
import { sweptFindings } from "./all-dead.ts";
import { isControlPlane } from "./control-plane.ts";
import { type Decision, decideRung, type LadderCase } from "./ladder.ts";
import { compareActions, type Rank, rankOf } from "./order.ts";
import type { HealPolicy } from "./policy.ts";
import { sweepAfter } from "./sweep.ts";

/** What is about to be done about one finding, in order; it ends with the first step that heals. */
export interface PlannedAction {
  readonly finding: Finding;
  readonly rank: Rank;
  readonly steps: readonly Step[];
  /** Why it may go this far. */
  readonly because: string;
}

export interface LeftAlone {
  readonly finding: Finding;
  readonly because: string;
}

export interface Plan {
  readonly actions: readonly PlannedAction[];
  readonly leftAlone: readonly LeftAlone[];
}

/** Findings and policy in, ordered actions out. Pure: the same findings always give the same plan. */
export function planHealing(diagnosis: Diagnosis, policy: HealPolicy): Plan {
  const actions: PlannedAction[] = [];
  const leftAlone: LeftAlone[] = [];
  const swept = policy.allDead ? sweptFindings(diagnosis) : [];
  const retained = new Set(diagnosis.dead.filter((one) => one.retained !== undefined).map(({ sandbox }) => sandbox.id));
  const known: Known = { view: diagnosis.view, retained };
  for (const finding of [...diagnosis.findings, ...swept]) {
    const planned = planOne(finding, known, policy);
    if ("steps" in planned) actions.push({ finding, ...planned });
    else leftAlone.push({ finding, because: planned.because });
  }
  actions.sort(compareActions);
  const overCap = actions.splice(policy.cap);
  leftAlone.push(
    ...overCap.map(({ finding }) => ({ finding, because: `over the cap of ${policy.cap} for one run; heal again` })),
  );
  return { actions, leftAlone };
}

interface Known {
  readonly view: NodeView;
  readonly retained: ReadonlySet<SandboxId>;
}

type Planned = Omit<PlannedAction, "finding"> | { readonly because: string };

function planOne(finding: Finding, known: Known, policy: HealPolicy): Planned {
  const { subject } = finding;
  const { view } = known;
  if (!finding.treatment.automatic && !isAskedForByName(finding, policy)) {
    return { because: `needs a person: ${finding.treatment.steps.join(" ")}` };
  }
  const about = "sandboxId" in subject && subject.sandboxId !== undefined ? view.about(subject.sandboxId) : undefined;
  if (subject.type !== "sandbox" || about?.sandbox === undefined) {
    if (finding.cure.length > 0) return { rank: "rest", steps: finding.cure, because: finding.summary };
    return {
      because: "nothing was found that could be ended: restarting the runtime clears it, which a person decides",
    };
  }
  const decision = decideRung(ladderCase(finding, about.sandbox, known, policy));
  if (decision.rung === 0) return { because: decision.because };
  return {
    rank: rankOf(about.sandbox),
    steps: stepsFor(decision, finding, about.sandbox, about),
    because: decision.because,
  };
}

/** Some treatments are attended because they end processes: naming the class alone is the person's consent. */
function isAskedForByName({ class: id, cure }: Finding, { only }: HealPolicy): boolean {
  return cure.length > 0 && only.length === 1 && only[0] === id;
}

function stepsFor({ rung }: Decision, { cure }: Finding, { id }: Sandbox, about: AboutId): readonly Step[] {
  const stop: Step = { kind: "stop-sandbox", sandboxId: id };
  switch (rung) {
    case 1:
      return [...cure, { kind: "await-kubelet", sandboxId: id }, stop];
    case 2:
      return [...cure, stop];
    case 3:
      return [...cure, { kind: "remove-sandbox", sandboxId: id }, ...sweepAfter(id, about)];
    default:
      return [];
  }
}

function ladderCase(finding: Finding, sandbox: Sandbox, { view, retained }: Known, policy: HealPolicy): LadderCase {
  const about = view.about(sandbox.id);
  return {
    provenDead: true,
    optedOut: isOptedOut(sandbox),
    retained: retained.has(sandbox.id),
    obstacle: finding.cure.length > 0,
    kubeletAlive: valueOr(view.snapshot.processes, undefined)?.kubelet !== undefined,
    outlastedMinAge: !isRecovering({ sandbox }, view),
    pod: podTruth(sandbox, view),
    controlPlane: isControlPlane(sandbox, about),
    neverCreated: wasNeverCreated(sandbox),
    holdsBlockedName: namesHeldInLogs(view).has(sandbox.id),
    attemptReused: finding.class === "clock-step-sandbox-attempt-reuse",
    hasContainers: about.containers.length > 0,
    diedWithNode: predatesStart(sandbox, view) !== undefined || about.containers.some(endWasLost),
    allDead: policy.allDead,
  };
}
