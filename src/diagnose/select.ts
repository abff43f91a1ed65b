import { classById } from "../classes/index.ts";
import { type Finding, podOf, sandboxIdOf, type Verdict } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import type { NamedPod, SandboxId } from "../node/types/ids.ts";
import type { Diagnosis } from "./diagnose.ts";
import { verdictOf } from "./verdict.ts";

/** Targets on the command line; none means everything. */
export interface Selection {
  readonly targets: readonly string[];
  readonly namespaces: readonly string[];
}

/**
 * - `finding`: by its id. It may be gone by now: its class is part of the id.
 * - `sandbox`: by its id or a prefix. - `pod`: by namespace and name.
 */
export type Target =
  | { readonly kind: "finding"; readonly id: string }
  | { readonly kind: "sandbox"; readonly id: SandboxId }
  | { readonly kind: "pod"; readonly namespace: string; readonly name: string };

export type TargetProblem =
  | { readonly code: "unknown-target"; readonly target: string }
  | { readonly code: "ambiguous-target"; readonly target: string; readonly candidates: readonly string[] };

/** Resolves each argument on this node. */
export function resolveTargets({ targets, namespaces }: Selection, { view, findings }: Diagnosis) {
  const ids = idsOn(view, findings);
  const pods = podsOn(view, findings).filter(({ namespace }) => isWithin(namespace, namespaces));
  const resolved: Target[] = [];
  const problems: TargetProblem[] = [];
  for (const target of targets) {
    const meanings = meaningsOf(target, ids, pods);
    const [only] = meanings;
    if (only === undefined) problems.push({ code: "unknown-target", target });
    else if (meanings.length > 1) problems.push({ code: "ambiguous-target", target, candidates: meanings.map(nameOf) });
    else resolved.push(only);
  }
  return { targets: resolved, problems };
}

/** A shorter prefix does not match: it is more likely another word. */
const SHORTEST_PREFIX = 4;

function meaningsOf(target: string, ids: ReadonlySet<SandboxId>, pods: readonly NamedPod[]): readonly Target[] {
  const slash = target.indexOf("/");
  if (slash > 0 && classById(target.slice(0, slash)) !== undefined) return [{ kind: "finding", id: target }];
  const named = pods.filter(({ namespace, name }) => (slash < 0 ? name === target : `${namespace}/${name}` === target));
  if (named.length > 0) return named.map(({ namespace, name }) => ({ kind: "pod", namespace, name }));
  if (target.length < SHORTEST_PREFIX) return [];
  return [...ids].filter((id) => id.startsWith(target)).map((id) => ({ kind: "sandbox", id }));
}

function nameOf(target: Target): string {
  return target.kind === "pod" ? `${target.namespace}/${target.name}` : target.id;
}

function idsOn({ sandboxes, unlistedIds }: NodeView, findings: readonly Finding[]): ReadonlySet<SandboxId> {
  return new Set([
    ...sandboxes.map(({ id }) => id),
    ...unlistedIds,
    ...findings.flatMap(({ subject }) => sandboxIdOf(subject) ?? []),
  ]);
}

function podsOn({ sandboxes, snapshot }: NodeView, findings: readonly Finding[]): readonly NamedPod[] {
  const { kubernetes } = snapshot;
  const known = kubernetes.source === "none" ? [] : kubernetes.pods;
  const all = [
    ...sandboxes.map(({ pod }) => pod),
    ...known.flatMap(({ namespace, name }) => (namespace && name ? [{ namespace, name }] : [])),
    ...findings.flatMap((finding) => [podOf(finding.subject) ?? [], waitingFor(finding)].flat()),
  ];
  return [...new Map(all.map((pod) => [`${pod.namespace}/${pod.name}`, pod])).values()];
}

/** The diagnosis of the named targets. */
export function select(diagnosis: Diagnosis, targets: readonly Target[], namespaces: readonly string[]): Diagnosis {
  const isNamed = (subject: Named) => isWithin(subject.pod?.namespace, namespaces) && matches(subject, targets);
  const findings = diagnosis.findings.filter((finding) => isNamed(namedBy(finding)));
  const alsoBlocking = diagnosis.findings.filter(
    (finding) => !findings.includes(finding) && waitingFor(finding).some((pod) => isNamed({ pod, finding: undefined })),
  );
  const pending = diagnosis.pending.filter(({ pod, sandboxId }) => isNamed({ pod, sandboxId }));
  const foundSandboxes = new Set(findings.flatMap((finding) => namedBy(finding).sandboxId ?? []));
  const isReady = diagnosis.view.sandboxes.some(
    ({ id, pod, state }) => state === "ready" && isNamed({ pod, sandboxId: id }),
  );
  const waits = diagnosis.podCreation.able === "no" && !isReady;
  const found = findings.map((finding) => withOwnFollowUps(finding, (pod) => isNamed({ pod })));
  return {
    ...diagnosis,
    findings: found,
    alsoBlocking,
    pending,
    kept: diagnosis.kept.filter(({ pod, sandboxId }) => isNamed({ pod, sandboxId })),
    // A finding named by its own id also keeps its proof of death.
    dead: diagnosis.dead.filter(
      ({ sandbox }) => foundSandboxes.has(sandbox.id) || isNamed({ pod: sandbox.pod, sandboxId: sandbox.id }),
    ),
    verdict: verdictOfTargets(verdictOf(diagnosis.view, [...found, ...alsoBlocking], pending), waits),
  };
}

/** Nothing is wrong with a pod that waits for a node on which no pod starts, and still it does not start. */
function verdictOfTargets(own: Verdict, waits: boolean): Verdict {
  return own === "healthy" && waits ? "degraded" : own;
}

function waitingFor({ blockedPods = [], terminatingPods = [] }: Finding): readonly NamedPod[] {
  return [...blockedPods, ...terminatingPods];
}

interface Named {
  readonly finding?: string | undefined;
  readonly sandboxId?: SandboxId | undefined;
  readonly pod?: NamedPod | undefined;
}

function namedBy(finding: Finding): Named {
  const { id, subject } = finding;
  return { finding: id, pod: podOf(subject), sandboxId: sandboxIdOf(subject) };
}

function matches({ finding, sandboxId, pod }: Named, targets: readonly Target[]): boolean {
  if (targets.length === 0) return true;
  return targets.some((target) => {
    switch (target.kind) {
      case "finding":
        return target.id === finding;
      case "sandbox":
        return target.id === sandboxId;
      case "pod":
        return target.name === pod?.name && target.namespace === pod.namespace;
    }
  });
}

function isWithin(namespace: string | undefined, namespaces: readonly string[]): boolean {
  return namespaces.length === 0 || (namespace !== undefined && namespaces.includes(namespace));
}

/** Pods that were not named are not restarted either. */
function withOwnFollowUps(finding: Finding, isNamed: (pod: NamedPod) => boolean): Finding {
  if (finding.followUps === undefined) return finding;
  const followUps = finding.followUps.filter((step) => step.kind !== "kick-pod" || isNamed(step));
  // The steps before a restart only wait for it.
  return { ...finding, followUps: followUps.some(({ kind }) => kind === "kick-pod") ? followUps : [] };
}
