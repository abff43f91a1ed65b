import type { DiagnosisPolicy } from "../../src/evidence/view.ts";
import { read } from "../../src/host/source.ts";
import type {
  AddressLease,
  CniConfig,
  FileHealth,
  MultusFile,
  NetnsEntry,
  ResultFile,
  ScratchFile,
} from "../../src/node/types/cni.ts";
import { containerId, podUid, type SandboxId, sandboxId, sandboxName } from "../../src/node/types/ids.ts";
import type {
  Container,
  ContainerExit,
  ContainerRecord,
  Lease,
  PluginProcess,
  RuntimeCondition,
  Sandbox,
  SandboxMetadata,
  SandboxRecord,
  ShimProcess,
  Task,
} from "../../src/node/types/runtime.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";

/** The time of every built snapshot; the machine has been up for an hour and its runtime for nearly as long. */
export const NOW = new Date("2026-03-01T12:00:00Z");
export const UPTIME_SECONDS = 3600;
const RUNTIME_STARTED_AFTER = 10;

export const PATIENT: DiagnosisPolicy = {
  minAgeMs: 600_000,
  inflightGraceMs: 600_000,
  volumeAttachmentAgeMs: 300_000,
  only: [],
  skip: [],
};
export const AT_ONCE: DiagnosisPolicy = { ...PATIENT, minAgeMs: 0, inflightGraceMs: 0, volumeAttachmentAgeMs: 0 };

export function ago(seconds: number): Date {
  return new Date(NOW.getTime() - seconds * 1000);
}

function nanoseconds(date: Date): bigint {
  return BigInt(date.getTime()) * 1_000_000n;
}

/** A full id, distinguished by its hex digit. */
export function idOf(digit: string): SandboxId {
  return sandboxId(digit.repeat(64).slice(0, 64));
}

/** The content of the node. Everything else was read, and is empty. */
export interface NodeParts {
  readonly runtimeVersion?: string;
  readonly runtimeName?: string;
  readonly conditions?: readonly RuntimeCondition[];
  readonly sandboxes?: readonly Sandbox[];
  readonly containers?: readonly Container[];
  readonly records?: readonly ContainerRecord[];
  readonly storeRecords?: readonly SandboxRecord[];
  readonly tasks?: readonly Task[];
  readonly leases?: readonly Lease[];
  readonly conf?: Partial<CniConfig>;
  readonly results?: readonly ResultFile[];
  readonly multus?: readonly MultusFile[];
  readonly flannel?: readonly ScratchFile[];
  readonly addresses?: readonly AddressLease[];
  readonly netns?: readonly NetnsEntry[];
  readonly netnsInodes?: readonly bigint[];
  readonly plugins?: readonly PluginProcess[];
  readonly shims?: readonly ShimProcess[];
  readonly processesOf?: Readonly<Record<string, readonly number[]>>;
  /** Seconds after boot at which a kubelet started; missing if none runs. */
  readonly kubeletStarted?: number;
  readonly logLines?: readonly string[];
  /** Uids that kubelet has; missing if no source answers. */
  readonly pods?: readonly string[];
}

export function snapshotOf(parts: NodeParts = {}, sources: Partial<Snapshot> = {}): Snapshot {
  const { kubeletStarted, pods } = parts;
  return {
    node: "node",
    observedAt: NOW,
    boot: read({ id: "boot", uptimeSeconds: UPTIME_SECONDS, startedAt: ago(UPTIME_SECONDS) }),
    runtime: {
      endpoint: "unix:///run/containerd/containerd.sock",
      reachable: true,
      name: parts.runtimeName ?? "containerd",
      version: parts.runtimeVersion ?? "1.6.20",
      process: { pid: 1, startedSecondsAfterBoot: RUNTIME_STARTED_AFTER },
    },
    cri: read({
      conditions: parts.conditions ?? [],
      sandboxes: parts.sandboxes ?? [],
      containers: parts.containers ?? [],
    }),
    containerd: read({
      records: parts.records ?? [],
      sandboxes: parts.storeRecords ?? [],
      tasks: parts.tasks ?? [],
      leases: parts.leases ?? [],
    }),
    cni: {
      conf: read({ ...BRIDGE, ...parts.conf }),
      results: read(parts.results ?? []),
      multus: read({ dir: "/var/lib/cni/multus", files: parts.multus ?? [] }),
      flannel: read(parts.flannel ?? []),
      hostLocal: read([{ network: "cbr0", dir: "/var/lib/cni/networks/cbr0", leases: parts.addresses ?? [] }]),
    },
    netns: read(parts.netns ?? []),
    processes: read({
      plugins: parts.plugins ?? [],
      shims: parts.shims ?? [],
      byContainer: new Map(Object.entries(parts.processesOf ?? {})),
      netnsInodes: new Set(parts.netnsInodes ?? []),
      ...(kubeletStarted === undefined ? {} : { kubelet: { pid: 2, startedSecondsAfterBoot: kubeletStarted } }),
    }),
    logs: read({ places: ["journal"], lines: (parts.logLines ?? []).map((text) => ({ place: "journal", text })) }),
    kubernetes:
      pods === undefined
        ? { source: "none" }
        : { source: "kubelet", pods: pods.map((uid) => ({ namespace: undefined, name: undefined, uid: podUid(uid) })) },
    ...sources,
  };
}

const BRIDGE: CniConfig = {
  dir: "/etc/cni/net.d",
  binDirs: ["/opt/cni/bin"],
  file: "/etc/cni/net.d/10-lab.conflist",
  plugins: [{ type: "bridge", binaryFound: true }],
};

export const MULTUS = {
  multus: {
    confFile: "/etc/cni/net.d/00-multus.conf",
    cniDir: "/var/lib/cni/multus",
    thick: false,
    binDir: "/opt/cni/bin",
  },
} as const satisfies Partial<CniConfig>;

export const THICK_MULTUS = { multus: { ...MULTUS.multus, thick: true } } as const satisfies Partial<CniConfig>;

export interface SandboxParts extends Partial<Omit<Sandbox, "id" | "pod">> {
  readonly uid?: string;
  readonly attempt?: number;
  readonly createdSecondsAgo?: number;
}

/** NotReady and created ten minutes ago, by default; its pod's uid is its id's digit. */
export function sandboxOf(digit: string, parts: SandboxParts = {}): Sandbox {
  const { uid = digit, attempt = 0, createdSecondsAgo = 600, ...rest } = parts;
  return {
    id: idOf(digit),
    pod: { namespace: "default", name: `pod-${uid}`, uid: podUid(uid), attempt },
    state: "notReady",
    createdAt: nanoseconds(ago(createdSecondsAgo)),
    labels: {},
    annotations: {},
    ...rest,
  };
}

export const FINISHED: ContainerExit = { exitCode: 0, reason: "Completed", finishedAt: 1n, logPath: "" };
export const LOST: ContainerExit = { exitCode: 255, reason: "Unknown", finishedAt: 1n, logPath: "" };

export function containerOf(digit: string, parts: Partial<Container> = {}): Container {
  return {
    id: containerId(`${digit}c`.repeat(32)),
    sandboxId: idOf(digit),
    name: "main",
    attempt: 0,
    state: "exited",
    createdAt: nanoseconds(ago(590)),
    labels: { "io.kubernetes.pod.uid": digit },
    ...parts,
  };
}

/** The record of a sandbox with a completed network. */
export function recordOf(digit: string, metadata: Partial<SandboxMetadata> = {}): ContainerRecord {
  return {
    id: idOf(digit),
    kind: "sandbox",
    createdAt: ago(600),
    labels: {},
    sandbox: {
      name: sandboxName(sandboxOf(digit).pod),
      netnsPath: `/var/run/netns/cni-${digit}`,
      hostNetwork: false,
      hasCniResult: true,
      ...metadata,
    },
  };
}

export function resultOf(digit: string, health: FileHealth = "ok", dir = "/var/lib/cni/results"): ResultFile {
  const path = `${dir}/cbr0-${idOf(digit)}-eth0`;
  return { ...scratchOf(digit, health), path, network: "cbr0", interfaceName: "eth0", hasConfig: true };
}

export function scratchOf(digit: string, health: FileHealth = "ok", dir = "/var/lib/cni/multus"): ScratchFile {
  const size = health === "empty" ? 0 : 100;
  return { path: `${dir}/${idOf(digit)}`, sandboxId: idOf(digit), health, size, modifiedAt: ago(600) };
}

export function addressOf(digit: string, address: string, modifiedSecondsAgo = 2 * UPTIME_SECONDS): AddressLease {
  return {
    path: `/var/lib/cni/networks/cbr0/${address}`,
    address,
    owner: { id: idOf(digit), interfaceName: "eth0" },
    modifiedAt: ago(modifiedSecondsAgo),
    size: 70,
  };
}

export function pluginFor(digit: string, cniCommand: "ADD" | "DEL", ageSeconds: number, pid = 500): PluginProcess {
  return {
    pid,
    startedSecondsAfterBoot: UPTIME_SECONDS - ageSeconds,
    ageSeconds,
    command: "/opt/cni/bin/bridge",
    origin: "runtime",
    cniCommand,
    sandboxId: idOf(digit),
    netns: `/var/run/netns/cni-${digit}`,
  };
}

export function shimOf(digit: string, pid = 700): ShimProcess {
  return { pid, startedSecondsAfterBoot: 60, ageSeconds: UPTIME_SECONDS - 60, id: idOf(digit), childPids: [701] };
}

/** containerd's log line of a failing StopPodSandbox. */
export function delErrorLine(digit: string, cause: string): string {
  const id = idOf(digit);
  const error = `failed to destroy network for sandbox \\"${id}\\": ${cause.replaceAll('"', '\\"')}`;
  return `time="2026-03-01T11:59:00Z" level=error msg="StopPodSandbox for \\"${id}\\" failed" error="${error}"`;
}
