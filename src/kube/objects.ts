import * as v from "valibot";

/** The fields of Kubernetes objects that unghost reads; everything else is dropped on receipt. */
const texts = v.nullish(v.record(v.string(), v.string()));

const MetadataSchema = v.object({ name: v.string(), labels: texts, annotations: texts });

const PodVolumeSchema = v.object({
  name: v.string(),
  persistentVolumeClaim: v.nullish(v.object({ claimName: v.string() })),
  ephemeral: v.nullish(v.object({})),
  csi: v.nullish(v.object({})),
  hostPath: v.nullish(v.object({ path: v.string() })),
});

const ContainerStateSchema = v.nullish(
  v.object({
    waiting: v.nullish(v.object({ reason: v.nullish(v.string()) })),
    running: v.nullish(v.object({ startedAt: v.nullish(v.string()) })),
    terminated: v.nullish(v.object({ exitCode: v.nullish(v.number()), finishedAt: v.nullish(v.string()) })),
  }),
);

const ContainerStatusSchema = v.object({
  restartCount: v.nullish(v.number()),
  state: ContainerStateSchema,
  lastState: ContainerStateSchema,
});

const containerStatuses = v.nullish(v.array(ContainerStatusSchema));

export const PodSchema = v.object({
  metadata: v.object({
    ...MetadataSchema.entries,
    namespace: v.string(),
    uid: v.string(),
    creationTimestamp: v.nullish(v.string()),
    deletionTimestamp: v.nullish(v.string()),
    ownerReferences: v.nullish(v.array(v.object({ kind: v.string(), controller: v.nullish(v.boolean()) }))),
  }),
  spec: v.nullish(
    v.object({
      nodeName: v.nullish(v.string()),
      volumes: v.nullish(v.array(PodVolumeSchema)),
      containers: v.nullish(v.array(v.object({ name: v.string() }))),
    }),
  ),
  status: v.nullish(
    v.object({
      phase: v.nullish(v.string()),
      conditions: v.nullish(v.array(v.object({ type: v.string(), status: v.string() }))),
      containerStatuses,
      initContainerStatuses: containerStatuses,
      ephemeralContainerStatuses: containerStatuses,
    }),
  ),
});

export const NodeSchema = v.object({
  metadata: MetadataSchema,
  spec: v.nullish(v.object({ taints: v.nullish(v.array(v.object({ key: v.string() }))) })),
  status: v.nullish(
    v.object({
      conditions: v.nullish(v.array(v.object({ type: v.string(), status: v.string() }))),
      nodeInfo: v.nullish(v.object({ machineID: v.nullish(v.string()), bootID: v.nullish(v.string()) })),
      volumesAttached: v.nullish(v.array(v.object({ name: v.string() }))),
      volumesInUse: v.nullish(v.array(v.string())),
    }),
  ),
});

export const NamespaceSchema = v.object({ metadata: MetadataSchema });

type Marked = v.InferOutput<typeof MetadataSchema>;

/** `unghost.dev/ignore: "true"`, as a label or an annotation. */
export function isIgnored({ labels, annotations }: Marked): boolean {
  return labels?.["unghost.dev/ignore"] === "true" || annotations?.["unghost.dev/ignore"] === "true";
}

/** `unghost.dev/paused` with any value but "false", so that a typo in the value still pauses. */
export function isPaused({ labels, annotations }: Marked): boolean {
  return [labels, annotations].some((marks) => (marks?.["unghost.dev/paused"] ?? "false") !== "false");
}

/** Set by administrators and controllers of maintenance, as Kubernetes defines them. */
const MAINTENANCE_CONDITIONS: ReadonlySet<string> = new Set([
  "DrainInProgress",
  "MaintenanceInProgress",
  "GracefulNodeShutdownInProgress",
]);
/** By kured with --annotate-nodes, from before the drain until the node is back. */
const KURED_REBOOT = "weave.works/kured-reboot-in-progress";
/** Of medik8s' maintenance and remediation, such as medik8s.io/drain. */
const MEDIK8S_TAINT = /^(?:[a-z-]+\.)?medik8s\.io\//;

/** By what the node is in maintenance; undefined if it is not. */
export function maintenanceOf({ metadata, spec, status }: v.InferOutput<typeof NodeSchema>): string | undefined {
  const condition = status?.conditions?.find(
    ({ type, status: answer }) => MAINTENANCE_CONDITIONS.has(type) && answer === "True",
  );
  if (condition !== undefined) return `the condition ${condition.type}`;
  if (metadata.annotations?.[KURED_REBOOT] !== undefined) return `the annotation ${KURED_REBOOT}`;
  const taint = spec?.taints?.find(({ key }) => MEDIK8S_TAINT.test(key));
  return taint && `the taint ${taint.key}`;
}

/**
 * The pod uid in its sandboxes. For a static pod it is the hash of its manifest: the API has only a mirror pod with
 * another uid that the runtime does not know.
 */
export function sandboxUid({ metadata }: v.InferOutput<typeof PodSchema>): string {
  const { annotations, uid } = metadata;
  return annotations?.["kubernetes.io/config.mirror"] || annotations?.["kubernetes.io/config.hash"] || uid;
}

/** Names of the claims that a pod mounts, including those generated for ephemeral volumes. */
export function claimsOf({ metadata, spec }: v.InferOutput<typeof PodSchema>): readonly string[] {
  return (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return [persistentVolumeClaim.claimName];
    return ephemeral ? [`${metadata.name}-${name}`] : [];
  });
}

/**
 * The pod has CSI volumes, and all of them are made for this pod alone: inline ones and generic ephemeral ones. A new pod
 * of its controller has new volumes.
 */
function hasVolumesOfItsOwn({ spec }: v.InferOutput<typeof PodSchema>): boolean {
  const volumes = spec?.volumes ?? [];
  const own = volumes.some(({ csi, ephemeral }) => Boolean(csi ?? ephemeral));
  return own && !volumes.some(({ persistentVolumeClaim }) => Boolean(persistentVolumeClaim));
}

/** The pod's state in the cluster, and its role for storage. Default values are left out. */
export interface PodState {
  /** The uid of its API object, if it differs from the uid in its sandboxes (mirror pod). */
  readonly objectUid?: string;
  /** The kind of the controller that re-creates it. */
  readonly controller?: string;
  /** Why its containers do not run, such as CrashLoopBackOff. */
  readonly waiting?: readonly string[];
  /** Containers that ended with an error; missing if none did, or if the pod has finished. */
  readonly crash?: Crash;
  readonly csi?: CsiMounts;
  readonly ownVolumes?: true;
  /** Only of a DaemonSet's pod that installs CNI plugins or their configuration. */
  readonly networkAddOn?: "ready" | "not-ready";
}

/**
 * Kubelet shows the reason CrashLoopBackOff only for a part of the time: since 1.36 a container is mostly `terminated`
 * between two starts.
 */
export interface Crash {
  /** One of them does not run now. */
  readonly down: boolean;
  /** When the last one ended; missing if kubelet does not report it. */
  readonly endedAt?: Date;
}

/** A pod that mounts the directory of a CSI driver's socket. */
export interface CsiMounts {
  /** Directories of the node, such as /var/lib/kubelet/plugins/driver.longhorn.io. */
  readonly dirs: readonly string[];
  /** The pod registers the driver with kubelet, so it is the driver's node plugin. */
  readonly registers: boolean;
}

type Pod = v.InferOutput<typeof PodSchema>;

export function podState(pod: Pod): PodState {
  const { metadata, status } = pod;
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true)?.kind;
  const statuses = status?.containerStatuses ?? [];
  const waiting = statuses.flatMap(({ state }) => state?.waiting?.reason ?? []);
  const crash = crashOf(pod);
  const csi = csiMounts(pod);
  return {
    ...(sandboxUid(pod) === metadata.uid ? {} : { objectUid: metadata.uid }),
    controller,
    ...(waiting.length === 0 ? {} : { waiting }),
    crash,
    csi,
    ownVolumes: hasVolumesOfItsOwn(pod) || undefined,
    networkAddOn: controller === "DaemonSet" ? networkAddOn(pod) : undefined,
  };
}

/** What an add-on mounts to install its plugin or its configuration, on any distribution. */
export const CNI_DIRECTORIES =
  /^\/(?:etc\/cni|opt\/cni|var\/lib\/cni)(?:\/|$)|\/(?:cni\/net\.d|cni-network|cni\/bin)\/?$/;

function networkAddOn({ spec, status }: Pod): PodState["networkAddOn"] {
  if (spec?.volumes?.some(({ hostPath }) => CNI_DIRECTORIES.test(hostPath?.path ?? "")) !== true) return undefined;
  const isReady = status?.conditions?.some((one) => one.type === "Ready" && one.status === "True") === true;
  return isReady ? "ready" : "not-ready";
}

/** A container of the pod has crashed and does not run now. */
export function isDown({ crash, waiting }: Pick<PodState, "crash" | "waiting">): boolean {
  return crash?.down === true || waiting?.includes("CrashLoopBackOff") === true;
}

function crashOf({ status }: Pod): Crash | undefined {
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return undefined;
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const crashed = statuses.flatMap(({ state, lastState }) => {
    const ends = [state?.terminated, lastState?.terminated].filter((end) => end && end.exitCode !== 0);
    if (ends.length === 0) return [];
    // An init container that succeeded in the end does not block its pod any more.
    if (state?.terminated?.exitCode === 0) return [];
    return [{ down: !state?.running, times: ends.flatMap((end) => end?.finishedAt ?? []) }];
  });
  if (crashed.length === 0) return undefined;
  const times = crashed.flatMap((one) => one.times.map((time) => new Date(time).getTime())).filter(Number.isFinite);
  return {
    down: crashed.some(({ down }) => down),
    ...(times.length === 0 ? {} : { endedAt: new Date(Math.max(...times)) }),
  };
}

/** Below any kubelet root: `plugins/<driver>`, without kubelet's own `plugins/kubernetes.io`. */
const SOCKET_DIR = /\/plugins\/(?!kubernetes\.io(?:\/|$))[^/]+\/?$/;
const REGISTRY = /\/plugins_registry\/?$/;

function csiMounts({ spec }: Pod): CsiMounts | undefined {
  const paths = (spec?.volumes ?? []).flatMap(({ hostPath }) => hostPath?.path ?? []);
  const dirs = paths.filter((path) => SOCKET_DIR.test(path)).map((path) => path.replace(/\/$/, ""));
  if (dirs.length === 0) return undefined;
  const registrar = (spec?.containers ?? []).some(({ name }) => name.includes("registrar"));
  return { dirs, registers: registrar || paths.some((path) => REGISTRY.test(path)) };
}
