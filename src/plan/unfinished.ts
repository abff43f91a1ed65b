import { deadAfterCrash } from "../classes/left-behind/dead-after-crash.ts";
import type { Diagnosis } from "../diagnose/diagnose.ts";
import type { Finding } from "../evidence/finding.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";

/** Dead sandboxes that nobody complains about, but whose removal an earlier run had begun: it is brought to its end. */
export function unfinishedFindings({ dead, findings }: Diagnosis, unfinished: ReadonlySet<string>): readonly Finding[] {
  if (unfinished.size === 0) return [];
  const explained = new Set(findings.flatMap(({ subject }) => ("sandboxId" in subject ? [subject.sandboxId] : [])));
  const { mode, reversible, steps } = deadAfterCrash.treatment;
  return dead
    .filter(
      ({ sandbox, retained }) => unfinished.has(sandbox.id) && retained === undefined && !explained.has(sandbox.id),
    )
    .map((candidate) => ({
      id: `${deadAfterCrash.id}/${candidate.sandbox.id}`,
      class: deadAfterCrash.id,
      ...sandboxDetected(candidate, {
        summary: "its removal was begun by an earlier run of unghost and interrupted; its name is still taken",
        evidence: [{ source: "journal", fact: "remove-sandbox was begun and never ended" }],
      }),
      treatment: { automatic: mode === "automatic", reversible, steps },
    }));
}
