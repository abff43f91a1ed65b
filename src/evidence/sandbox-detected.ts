import type { ResultFile, ScratchFile } from "../node/types/cni.ts";
import { type SandboxId, sandboxName } from "../node/types/ids.ts";
import type { Runtime } from "../node/types/runtime.ts";
import type { Candidate } from "./candidates.ts";
import type { Detected } from "./finding.ts";
import type { LeaseRef, Step } from "./step.ts";
import { containerdBehaviour, crioBehaviour } from "./versions.ts";
import type { AboutId, NodeView } from "./view.ts";

/** A finding about one dead sandbox: first its proof of death, then the evidence of this class. */
export function sandboxDetected(
  { sandbox, evidence, retained, isPodGone }: Candidate,
  what: Pick<Detected, "summary" | "evidence" | "cure"> &
    Partial<Pick<Detected, "severity">> & { readonly path?: string },
): Detected {
  const { pod } = sandbox;
  const name = sandboxName(pod);
  const isBlocked = retained === undefined && !isPodGone;
  return {
    severity: what.severity ?? "warning",
    subject: { type: "sandbox", sandboxId: sandbox.id, name, pod, path: what.path },
    summary: what.summary,
    evidence: [...evidence, ...what.evidence],
    blocks: isBlocked ? [`pod ${pod.namespace}/${pod.name}: the name ${name} stays reserved`] : [],
    blockedPods: retained === undefined ? [{ namespace: pod.namespace, name: pod.name }] : [],
    cure: what.cure ?? [],
  };
}

/** A cache file that cannot be parsed, and may be quarantined for that. */
type BrokenFile = ScratchFile & { readonly health: "empty" | "corrupt" };

export function isBroken<T extends ScratchFile>(file: T): file is T & BrokenFile {
  return file.health === "empty" || file.health === "corrupt";
}

/** The broken result files of a sandbox on which DEL fails; this depends on the runtime. */
export function blockingResults(results: readonly ResultFile[], { snapshot }: NodeView): (ResultFile & BrokenFile)[] {
  const { runtime, cni } = snapshot;
  const runtimeStumbles = corruptResultBlocks(runtime);
  const multusDir = cni.multus.status === "read" ? cni.multus.value.dir : undefined;
  // Under multus a single-plugin network reads its own cache with multus' libcni, which fails with any runtime.
  const isRead = ({ path }: ResultFile) =>
    runtimeStumbles || (multusDir !== undefined && path.startsWith(`${multusDir}/`));
  return results.filter((file) => isRead(file)).filter(isBroken);
}

export function brokenInWords(file: BrokenFile): string {
  return file.health === "empty" ? `${file.path} is empty` : `${file.path} (${file.size} bytes) is not valid JSON`;
}

export function stepToQuarantine(file: BrokenFile): Step {
  return { kind: "quarantine-file", path: file.path, health: file.health };
}

/** What is left of the cache of a sandbox that is gone. */
export function stepToMoveOrphan({ path }: ScratchFile): Step {
  return { kind: "quarantine-file", path, health: "orphaned" };
}

export function leaseRefs({ leases }: AboutId): readonly LeaseRef[] {
  return leases.map(({ network, path, address, owner: { interfaceName } }) => ({
    network,
    path,
    address,
    interfaceName,
  }));
}

/** The sandboxes of which a plugin's own file cannot be parsed. */
export function withCorruptFile(
  view: NodeView,
  candidates: readonly Candidate[],
  fileOf: (about: Candidate["about"]) => ScratchFile | undefined,
  summary: string,
): readonly Detected[] {
  return candidates.flatMap((candidate) => {
    const file = fileOf(candidate.about);
    if (file === undefined || !isBroken(file)) return [];
    const evidence = [{ source: "cni", fact: brokenInWords(file) }] as const;
    const cure = [stepToQuarantine(file)];
    const severity = blocksRemoval(candidate, view) ? "critical" : "warning";
    return [sandboxDetected(candidate, { severity, summary, evidence, path: file.path, cure })];
  });
}

/**
 * Whether a DEL that fails keeps the sandbox, and a pod waits for that. Newer containerd releases ignore the failure if
 * the network was never set up.
 */
function blocksRemoval({ about, retained, isPodGone }: Candidate, { snapshot: { runtime } }: NodeView): boolean {
  if (retained !== undefined || isPodGone) return false;
  if (about.metadata?.hasCniResult !== false || !runtime.name.startsWith("containerd")) return true;
  const stop = containerdBehaviour(runtime.version)?.stop;
  return stop === undefined || stop === "del-error-blocks";
}

/** Whether the runtime's libcni fails DEL on an unparsable cached result; false for an unknown runtime. */
function corruptResultBlocks({ name, version }: Pick<Runtime, "name" | "version">): boolean {
  if (name.startsWith("containerd")) return containerdBehaviour(version)?.corruptResultBlocks === true;
  if (name.startsWith("cri-o")) return crioBehaviour(version)?.corruptResultBlocks === true;
  return false;
}

/** The DELs that are still due for the plugins of a sandbox that is gone; replayed before their records are moved. */
export function replaysOf(sandboxId: SandboxId, results: readonly ResultFile[]): readonly Step[] {
  const replayable = results.filter(({ health, hasConfig }) => health === "ok" && hasConfig === true);
  return replayable.map(({ path }) => ({ kind: "replay-del", sandboxId, path }));
}
