import { classById } from "../classes/index.ts";
import type { Finding } from "../evidence/finding.ts";
import { STEPS, type StepKind, type StepOf } from "../evidence/step.ts";
import type { NodeView } from "../evidence/view.ts";
import type { ReportedFinding } from "./node-report.ts";
import { sinceOf } from "./since.ts";

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
