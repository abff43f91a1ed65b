import { isBroken, quarantineStep } from "../evidence/corrupt-files.ts";
import { networkStillHeld } from "../evidence/ending.ts";
import type { Finding } from "../evidence/finding.ts";
import { multusVariant } from "../evidence/multus-variants.ts";
import { podPresence } from "../evidence/pod-presence.ts";
import type { Step } from "../evidence/step.ts";
import type { AboutId, NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { Sandbox } from "../snapshot/types.ts";

/**
 * All that stands in the way of a sandbox's removal: what its finding names, and what else is wrong with it. One cause
 * makes one finding, and a second broken file makes DEL fail all the same.
 */
export function obstaclesOf({ cure }: Finding, sandbox: Sandbox, about: AboutId, view: NodeView): readonly Step[] {
  const named = new Set(cure.map(keyOf));
  const others = [...brokenFiles(about), ...lostMultusCache(sandbox, about, view)];
  return [...others.filter((step) => !named.has(keyOf(step))), ...cure];
}

function keyOf(step: Step): string {
  return step.kind === "quarantine-file" ? `${step.kind} ${step.path}` : step.kind;
}

function brokenFiles({ results, multus, flannel }: AboutId): readonly Step[] {
  return [...results, multus, flannel]
    .filter((file) => file !== undefined)
    .filter(isBroken)
    .map(quarantineStep);
}

/** Delegates that still hold something while multus has forgotten them: a sandbox that was only stopped ends so. */
function lostMultusCache(sandbox: Sandbox, about: AboutId, view: NodeView): readonly Step[] {
  const { conf, multus: cache } = view.snapshot.cni;
  const multus = valueOr(conf, undefined)?.multus;
  if (multus === undefined || !multusVariant(multus).failedDelBlocksRemoval || about.multus !== undefined) return [];
  const hadNetwork = about.metadata?.hasCniResult === true && !about.metadata.hostNetwork;
  if (!hadNetwork || networkStillHeld(about, view) === undefined || podPresence(sandbox, view) === "gone") return [];
  const dir = valueOr(cache, undefined)?.dir ?? multus.cniDir;
  return [{ kind: "multus-marker", sandboxId: sandbox.id, dir }];
}
