import { valueOr } from "../host/source.ts";
import type { AddressLease, MultusFile, ResultFile, ScratchFile } from "../node/types/cni.ts";
import type { SandboxId } from "../node/types/ids.ts";
import type {
  Container,
  ContainerRecord,
  PluginProcess,
  Sandbox,
  SandboxMetadata,
  SandboxRecord,
  ShimProcess,
} from "../node/types/runtime.ts";
import type { Snapshot } from "../node/types/snapshot.ts";

/** Options of the run that change what counts as a finding. */
export interface DiagnosisPolicy {
  readonly minAgeMs: number;
  /** For a creation or removal of which only the age is known. */
  readonly inflightGraceMs: number;
  /** For one whose caller timed out; missing: see creationDueAt(). Set if --inflight-grace overrides it. */
  readonly abandonedGraceMs?: number;
  /** How long a volume may wait to be attached. */
  readonly volumeAttachmentAgeMs: number;
  readonly only: readonly string[];
  readonly skip: readonly string[];
  /** The API was asked for by name: a scan without its answer is not complete. */
  readonly needsApi?: boolean;
}

/**
 * The policy for a later scan of the same run. What started after the first scan is in flight, however short the grace is:
 * such as the DEL by which the runtime rolls back what the run itself has ended.
 */
export function duringRun<Policy extends DiagnosisPolicy>(
  policy: Policy,
  first: Pick<Snapshot, "boot"> | undefined,
  now: Pick<Snapshot, "boot">,
): Policy {
  if (first?.boot.status !== "read" || now.boot.status !== "read") return policy;
  const runMs = (now.boot.value.uptimeSeconds - first.boot.value.uptimeSeconds) * 1000;
  const { inflightGraceMs, abandonedGraceMs } = policy;
  return {
    ...policy,
    inflightGraceMs: Math.max(inflightGraceMs, runMs),
    ...(abandonedGraceMs === undefined ? {} : { abandonedGraceMs: Math.max(abandonedGraceMs, runMs) }),
  };
}

/** A snapshot indexed by id, so that a class gets all facts about a sandbox without a search. */
export interface NodeView {
  readonly snapshot: Snapshot;
  readonly policy: DiagnosisPolicy;
  readonly sandboxes: readonly Sandbox[];
  /** All facts by id: of listed sandboxes, and of ids that only a record, a file or a process has. */
  about(id: string): AboutId;
  /** Ids that appear in any source but not in the CRI list, sorted. */
  readonly unlistedIds: readonly SandboxId[];
  readonly sandboxesOfPod: ReadonlyMap<string, readonly Sandbox[]>;
  /** Seconds since the runtime started, by the monotonic clock; undefined when its process was not found. */
  readonly runtimeUpSeconds: number | undefined;
}

/** All facts about one sandbox id. */
export interface AboutId {
  readonly sandbox?: Sandbox;
  readonly containers: readonly Container[];
  readonly record?: ContainerRecord;
  readonly storeRecord?: SandboxRecord;
  readonly metadata?: SandboxMetadata;
  readonly results: readonly ResultFile[];
  readonly multus?: MultusFile;
  readonly flannel?: ScratchFile;
  readonly leases: readonly OwnedLease[];
  readonly plugins: readonly PluginProcess[];
  readonly shims: readonly ShimProcess[];
  /** Processes in a cgroup that carries the id. */
  readonly pids: readonly number[];
}

/** The files in which CNI plugins and libcni keep what DEL needs. */
export function cacheFilesOf({ results, multus, flannel }: AboutId): readonly ScratchFile[] {
  return [...results, multus, flannel].filter((file) => file !== undefined);
}

/** containerd has a record of it, in either of its stores. */
export function isRecorded({ record, storeRecord }: AboutId): boolean {
  return record !== undefined || storeRecord !== undefined;
}

type OwnedLease = AddressLease & { readonly network: string; readonly owner: NonNullable<AddressLease["owner"]> };

type Mutable<Field> = Field extends readonly (infer One)[] ? One[] : Field;
type Draft = { -readonly [Key in keyof AboutId]: Mutable<AboutId[Key]> };

function nothing(): Draft {
  return { containers: [], results: [], leases: [], plugins: [], shims: [], pids: [] };
}

export function viewOf(snapshot: Snapshot, policy: DiagnosisPolicy): NodeView {
  const byId = new Map<string, Draft>();
  const draft = (id: string): Draft => {
    const about = byId.get(id) ?? nothing();
    byId.set(id, about);
    return about;
  };

  const cri = valueOr(snapshot.cri, undefined);
  for (const sandbox of cri?.sandboxes ?? []) draft(sandbox.id).sandbox = sandbox;
  for (const container of cri?.containers ?? []) draft(container.sandboxId).containers.push(container);
  joinContainerd(snapshot, draft);
  joinCni(snapshot, draft);
  joinProcesses(snapshot, draft, new Set((cri?.containers ?? []).map((container) => container.id)));

  const sandboxes = cri?.sandboxes ?? [];
  return {
    snapshot,
    policy,
    sandboxes,
    about: (id) => byId.get(id) ?? nothing(),
    unlistedIds: [...byId]
      .filter(([, about]) => about.sandbox === undefined)
      .map(([id]) => id as SandboxId)
      .sort(),
    sandboxesOfPod: Map.groupBy(sandboxes, (sandbox) => sandbox.pod.uid),
    runtimeUpSeconds: runtimeUpSeconds(snapshot),
  };
}

function joinContainerd(snapshot: Snapshot, draft: (id: string) => Draft): void {
  const containerd = valueOr(snapshot.containerd, undefined);
  if (containerd === undefined) return;
  for (const record of containerd.records) {
    if (record.kind !== "sandbox") continue;
    const about = draft(record.id);
    about.record = record;
    about.metadata = record.sandbox;
  }
  for (const record of containerd.sandboxes) {
    const about = draft(record.id);
    about.storeRecord = record;
    about.metadata ??= record.sandbox;
  }
}

function joinCni(snapshot: Snapshot, draft: (id: string) => Draft): void {
  for (const file of valueOr(snapshot.cni.results, [])) draft(file.sandboxId).results.push(file);
  for (const file of valueOr(snapshot.cni.multus, undefined)?.files ?? []) draft(file.sandboxId).multus = file;
  for (const file of valueOr(snapshot.cni.flannel, [])) draft(file.sandboxId).flannel = file;
  for (const network of valueOr(snapshot.cni.hostLocal, [])) {
    for (const lease of network.leases) {
      const { owner } = lease;
      if (owner !== undefined) draft(owner.id).leases.push({ ...lease, owner, network: network.network });
    }
  }
}

function joinProcesses(snapshot: Snapshot, draft: (id: string) => Draft, containerIds: ReadonlySet<string>): void {
  const processes = valueOr(snapshot.processes, undefined);
  if (processes === undefined) return;
  for (const plugin of processes.plugins) draft(plugin.sandboxId).plugins.push(plugin);
  for (const shim of processes.shims) draft(shim.id).shims.push(shim);
  for (const [id, pids] of processes.byContainer) {
    // A workload container's cgroup is not a sandbox; its sandbox is found through the CRI list.
    if (!containerIds.has(id)) draft(id).pids.push(...pids);
  }
}

function runtimeUpSeconds(snapshot: Snapshot): number | undefined {
  const started = snapshot.runtime.process?.startedSecondsAfterBoot;
  if (started === undefined || snapshot.boot.status !== "read") return undefined;
  return Math.max(0, snapshot.boot.value.uptimeSeconds - started);
}
