import type { Finding } from "../classes/finding.ts";
import { keptInWords } from "../classes/kept-reason.ts";
import { retainedNotready } from "../classes/not-failures/retained-notready.ts";
import { sandboxDetected } from "../classes/sandbox-detected.ts";
import type { Diagnosis } from "../diagnose/diagnose.ts";

/** `--all-dead`: the dead sandboxes that no class complains about, as if they were findings. */
export function sweptFindings({ dead, findings }: Diagnosis): readonly Finding[] {
  const explained = new Set(findings.flatMap(({ subject }) => ("sandboxId" in subject ? [subject.sandboxId] : [])));
  return dead
    .filter(({ sandbox }) => !explained.has(sandbox.id))
    .map((candidate) => ({
      id: `${retainedNotready.id}/${candidate.sandbox.id}`,
      class: retainedNotready.id,
      ...sandboxDetected(candidate, {
        severity: "info",
        summary: "dead and rightly kept; removed because --all-dead asks for it",
        evidence: [{ source: "cri", fact: keptInWords(candidate.retained ?? { code: "not-stuck" }) }],
      }),
      treatment: { automatic: true, reversible: false, steps: ["Save its logs.", "Remove it over CRI."] },
    }));
}
