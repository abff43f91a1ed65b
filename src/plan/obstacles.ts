import { classThatAdopts } from "../classes/index.ts";
import type { Diagnosis } from "../diagnose/diagnose.ts";
import { toFinding } from "../diagnose/from-logs.ts";
import { networkStillHeld } from "../evidence/ending.ts";
import { type Finding, sandboxIdOf } from "../evidence/finding.ts";
import { oldestOfEachSandbox } from "../evidence/locks.ts";
import { hasOutlivedRuntime } from "../evidence/outlived-plugins.ts";
import { podPresence } from "../evidence/pod-presence.ts";
import {
  isBroken,
  leaseRefs,
  replaysOf,
  sandboxDetected,
  stepToMoveOrphan,
  stepToQuarantine,
} from "../evidence/sandbox-detected.ts";
import { hungProcess, type Step } from "../evidence/step.ts";
import { multusVariant } from "../evidence/versions.ts";
import { type AboutId, cacheFilesOf, type NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { SandboxId } from "../node/types/ids.ts";
import type { Sandbox } from "../node/types/runtime.ts";

/**
 * Everything that blocks a sandbox's removal: the obstacles of its finding, and other faults of the sandbox. One cause
 * makes one finding, but a second broken file makes DEL fail as well.
 */
export function obstaclesOf({ cure }: Finding, sandbox: Sandbox, about: AboutId, view: NodeView): readonly Step[] {
  const named = new Set(cure.map(keyOf));
  const others = [
    ...outlivedPlugins(about, view),
    ...cacheFilesOf(about).filter(isBroken).map(stepToQuarantine),
    ...lostMultusCache(sandbox, about, view),
  ];
  return [...others.filter((step) => !named.has(keyOf(step))), ...cure];
}

function keyOf(step: Step): string {
  return step.kind === "quarantine-file" ? `${step.kind} ${step.path}` : step.kind;
}

/** With the record, nothing would name them any more. */
function outlivedPlugins({ plugins }: AboutId, view: NodeView): readonly Step[] {
  const left = plugins.filter((plugin) => hasOutlivedRuntime(plugin, view));
  const oldest = [...oldestOfEachSandbox(left, "ADD"), ...oldestOfEachSandbox(left, "DEL")];
  return oldest.map((plugin) => ({ kind: "end-process", ...hungProcess(plugin) }));
}

/**
 * Delegates that still hold something while multus has lost its cache: the state of a sandbox that was only stopped.
 */
function lostMultusCache(sandbox: Sandbox, about: AboutId, view: NodeView): readonly Step[] {
  const { conf, multus: cache } = view.snapshot.cni;
  const multus = valueOr(conf, undefined)?.multus;
  if (multus === undefined || !multusVariant(multus).failedDelBlocksRemoval || about.multus !== undefined) return [];
  const hadNetwork = about.metadata?.hasCniResult === true && !about.metadata.hostNetwork;
  if (!hadNetwork || networkStillHeld(about, view) === undefined || podPresence(sandbox, view) === "gone") return [];
  const dir = valueOr(cache, undefined)?.dir ?? multus.cniDir;
  return [{ kind: "multus-marker", sandboxId: sandbox.id, dir }];
}

/**
 * What may still be held after the runtime has removed a sandbox, if a delegate was never called or DEL ran without its
 * cache. Each step checks first and does nothing if nothing is left.
 */
export function sweepAfter(sandboxId: SandboxId, about: AboutId): readonly Step[] {
  const steps: Step[] = [];
  const leases = leaseRefs(about);
  if (leases.length > 0) steps.push({ kind: "release-addresses", sandboxId, leases });
  steps.push(...replaysOf(sandboxId, about.results));
  for (const file of cacheFilesOf(about)) if (file.health === "ok") steps.push(stepToMoveOrphan(file));
  return steps;
}

/** Dead sandboxes without a reported error whose removal an earlier run started: it is completed. */
export function unfinishedFindings({ dead, findings }: Diagnosis, unfinished: ReadonlySet<string>): readonly Finding[] {
  if (unfinished.size === 0) return [];
  const explained = new Set(findings.map(({ subject }) => sandboxIdOf(subject)));
  return dead
    .filter(
      ({ sandbox, retained }) => unfinished.has(sandbox.id) && retained === undefined && !explained.has(sandbox.id),
    )
    .map((candidate) =>
      toFinding(
        classThatAdopts("interrupted-removals"),
        sandboxDetected(candidate, {
          summary: "an earlier run of unghost started its removal and was interrupted; its name is still reserved",
          evidence: [{ source: "journal", fact: "remove-sandbox was started and never ended" }],
        }),
      ),
    );
}
