import type { KeptCode } from "../evidence/finding.ts";
import type { NodeReport } from "./node-report.ts";

const SHORT: Readonly<Record<KeptCode, string>> = {
  "opted-out": "opted out",
  alive: "alive",
  "not-proven-dead": "not proven dead",
  "network-teardown-in-flight": "removal in flight",
  "network-setup-in-flight": "creation in flight",
  "creation-in-flight": "creation in flight",
  "successor-running": "restarted pod",
  "static-pod": "static pod",
  "containers-finished": "finished pod",
  "container-ends-unread": "exit status unread",
  "pod-finished": "finished pod",
  "pod-known": "pod still known",
  "left-to-kubelet": "left to kubelet",
  "not-stuck": "not stuck",
  "class-not-selected": "class not selected",
};

const isCode = (code: string): code is KeptCode => Object.hasOwn(SHORT, code);

/** Sandboxes that are kept on purpose and not listed as pending. */
export function keptOnPurpose({ kept, pending = [] }: NodeReport): NodeReport["kept"] {
  const listed = new Set(pending.map(({ sandboxId }) => sandboxId));
  return kept.filter(({ sandboxId }) => !listed.has(sandboxId));
}

/** `4 kept on purpose (3 finished pod, 1 opted out).` */
export function keptLine(report: NodeReport): string | undefined {
  const kept = keptOnPurpose(report);
  if (kept.length === 0) return undefined;
  const groups = [...Map.groupBy(kept, ({ code }) => (code !== undefined && isCode(code) ? SHORT[code] : "other"))];
  const [first] = groups;
  const reasons =
    groups.length === 1 && first !== undefined
      ? first[0]
      : groups.map(([reason, group]) => `${group.length} ${reason}`).join(", ");
  return `${kept.length} kept on purpose (${reasons}).`;
}
