import type { FailureClass } from "../classes/failure-class.ts";
import { type Detected, type Finding, subjectKey } from "../evidence/finding.ts";

/** What was seen, with the name and the treatment of its class. */
export function toFinding(
  failureClass: FailureClass,
  { explains: _explained, attended, ...detected }: Detected,
): Finding {
  const { mode, reversible, steps } = failureClass.treatment;
  return {
    id: `${failureClass.id}/${subjectKey(detected.subject)}`,
    class: failureClass.id,
    ...detected,
    treatment: { automatic: mode === "automatic" && attended === undefined, reversible, steps: attended ?? steps },
  };
}
