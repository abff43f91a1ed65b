import type { Finding } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import { printable } from "../host/printable.ts";
import type { PodEvent } from "../snapshot/types.ts";

const MOST_QUOTED = 2;

/** Adds to each finding about a pod what the cluster itself complains of. Evidence alone: an event may be an hour old. */
export function withEventEvidence(findings: readonly Finding[], { snapshot }: NodeView): readonly Finding[] {
  const events = snapshot.kubernetes.source === "api" ? (snapshot.kubernetes.events ?? []) : [];
  if (events.length === 0) return findings;
  return findings.map((finding) => {
    const pod = "pod" in finding.subject ? finding.subject.pod : undefined;
    const own = events.filter((event) => event.pod === pod?.name && event.namespace === pod.namespace);
    if (own.length === 0) return finding;
    return { ...finding, evidence: [...finding.evidence, ...own.slice(0, MOST_QUOTED).map(eventEvidence)] };
  });
}

export function eventEvidence({ reason, message, count }: PodEvent): Finding["evidence"][number] {
  const times = count > 1 ? `, ${count} times` : "";
  return { source: "kubernetes", fact: `event ${reason}${times}: ${printable(message)}` };
}
