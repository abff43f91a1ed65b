import { nodeHolds } from "../evidence/cluster-holds.ts";
import type { Finding } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import type { LeftAlone } from "../plan/plan.ts";
import { planReasonInWords } from "../plan/plan-reason.ts";
import type { Decided } from "./policy/ledger.ts";
import type { Hold, RefusalReason, Sighting, Standing } from "./state.ts";

/** A standing, and why nothing is done where that is somebody's decision. */
export interface Stand extends Pick<Sighting, "standing" | "attempts"> {
  readonly refusal?: RefusalReason;
}

/** What is done about each finding, in words. What may run now keeps its standing until it does. */
export function standsOf(
  decided: readonly Decided[],
  leftAlone: readonly LeftAlone[],
  hold: Hold | undefined,
): ReadonlyMap<string, Stand> {
  return new Map([
    ...leftAlone.map((left) => [left.finding.id, leftAloneStand(left, hold)] as const),
    ...decided.flatMap((one) => {
      const stand = standOf(one, hold);
      return stand === undefined ? [] : [[one.action.finding.id, stand] as const];
    }),
  ]);
}

function leftAloneStand({ finding, reason }: LeftAlone, hold: Hold | undefined): Stand {
  const standing: Standing = { kind: "observed", because: planReasonInWords(reason) };
  // What needs a person by its nature was refused by nobody.
  if (!finding.treatment.automatic) return { standing, attempts: 0 };
  return { standing, attempts: 0, refusal: reason.code === "opted-out" ? "opted-out" : (hold?.reason ?? "guard") };
}

function standOf({ decision, attempts }: Decided, hold: Hold | undefined): Stand | undefined {
  switch (decision.kind) {
    case "run":
      if (hold === undefined) return undefined;
      return { standing: { kind: "waiting", because: hold.because }, attempts, refusal: hold.reason };
    case "wait":
      return { standing: { kind: "waiting", because: decision.because }, attempts, refusal: decision.reason };
    case "observe":
      return { standing: { kind: "observed", because: decision.because }, attempts, refusal: decision.reason };
    case "give-up":
      return { standing: { kind: "given-up", because: decision.because, next: decision.next }, attempts };
  }
}

/** What holds everything on this node, by the cluster's word. */
export function clusterHold(view: NodeView): Hold | undefined {
  const { paused, node } = nodeHolds(view);
  if (paused) return { reason: "paused", because: "the node is paused by unghost.dev/paused" };
  if (node) return { reason: "opted-out", because: "the node is opted out by unghost.dev/ignore" };
  return undefined;
}

/** Unghost runs in it: whatever is wrong with it is for kubelet to mend. */
export function isOwnPod({ subject }: Finding, ownPodUid: string | undefined): boolean {
  return ownPodUid !== undefined && "pod" in subject && subject.pod?.uid === ownPodUid;
}
