import type { Sandbox } from "../snapshot/types.ts";
import { endedInOrder, runningSuccessor } from "./ending.ts";
import type { Evidence, Kept } from "./finding.ts";
import { livenessOf } from "./liveness.ts";
import type { AboutId, NodeView } from "./view.ts";

/** A sandbox that is proven dead, and whether Kubernetes has a reason to keep it nevertheless. */
export interface Candidate {
  readonly sandbox: Sandbox;
  readonly about: AboutId;
  /** The proof of death, to be quoted by whichever class explains it. */
  readonly evidence: readonly Evidence[];
  /** Set when the sandbox is rightly kept: only an obstacle to its removal makes it a finding then. */
  readonly retained?: string;
}

export interface Sorted {
  readonly candidates: readonly Candidate[];
  readonly kept: readonly Kept[];
}

/** Tells the sandboxes that may be ghosts from those that are out of the question. */
export function sortSandboxes(view: NodeView): Sorted {
  const candidates: Candidate[] = [];
  const kept: Kept[] = [];
  for (const sandbox of view.sandboxes) {
    if (sandbox.state === "ready") continue;
    const keep = (reason: string): void => {
      kept.push({ sandboxId: sandbox.id, pod: sandbox.pod, reason });
    };
    if (isOptedOut(sandbox)) {
      keep("opted out by unghost.dev/ignore");
      continue;
    }
    const liveness = livenessOf(sandbox, view);
    if (liveness.state === "alive") {
      keep(`not dead: ${liveness.because}`);
      continue;
    }
    if (liveness.state === "unproven") {
      keep(`not proven dead: ${liveness.because}`);
      continue;
    }
    const about = view.about(sandbox.id);
    if (isBeingTakenDown(about, view)) {
      keep("its network is being taken down right now");
      continue;
    }
    const retained = reasonToRetain(sandbox, about, view);
    candidates.push({
      sandbox,
      about,
      evidence: liveness.evidence,
      ...(retained === undefined ? {} : { retained }),
    });
  }
  return { candidates, kept };
}

const IGNORE = "unghost.dev/ignore";

export function isOptedOut(sandbox: Sandbox): boolean {
  return sandbox.labels[IGNORE] === "true" || sandbox.annotations[IGNORE] === "true";
}

/** A plugin is at work on it. One that does not end within the grace is a finding of its own, and no excuse any more. */
function isBeingTakenDown({ plugins }: AboutId, { policy }: NodeView): boolean {
  return plugins.some((plugin) => plugin.ageSeconds * 1000 < policy.inflightGraceMs);
}

function reasonToRetain(sandbox: Sandbox, about: AboutId, view: NodeView): string | undefined {
  const successor = runningSuccessor(sandbox, view);
  if (successor !== undefined) {
    return `the pod runs again under attempt ${successor.pod.attempt}; this one holds the containers behind kubectl logs --previous`;
  }
  if (endedInOrder(about)) {
    return "a finished pod: its containers ended in an orderly way, and kubectl logs still reads them";
  }
  return undefined;
}
