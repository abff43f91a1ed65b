import { sandboxName } from "../node/types/ids.ts";
import type { Candidate } from "./candidates.ts";
import type { Detected, Evidence, Severity } from "./finding.ts";
import type { Step } from "./step.ts";

/** A finding about one dead sandbox: first its proof of death, then the evidence of this class. */
export function sandboxDetected(
  { sandbox, evidence, retained }: Candidate,
  what: {
    readonly summary: string;
    readonly evidence: readonly Evidence[];
    readonly severity?: Severity;
    readonly path?: string;
    readonly cure?: readonly Step[];
  },
): Detected {
  const { pod } = sandbox;
  const name = sandboxName(pod);
  return {
    severity: what.severity ?? "warning",
    subject: {
      type: "sandbox",
      sandboxId: sandbox.id,
      name,
      pod,
      path: what.path,
    },
    summary: what.summary,
    evidence: [...evidence, ...what.evidence],
    blocks: retained === undefined ? [`pod ${pod.namespace}/${pod.name}: the name ${name} stays reserved`] : [],
    blockedPods: retained === undefined ? [{ namespace: pod.namespace, name: pod.name }] : [],
    cure: what.cure ?? [],
  };
}
