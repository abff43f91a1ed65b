import * as v from "valibot";
import { type Api, CACHED, getObject } from "./api.ts";
import { type AttachedElsewhere, isUnsettled, namesOf, type ReadAttachments } from "./attachments.ts";
import {
  type ApiPod,
  type AttacherLease,
  type ClaimName,
  csiVolumes,
  type Holder,
  type NodeVolumes,
  type UnattachedVolume,
} from "./cluster-facts.ts";
import { KubeError, orKubeError, unlessError, unlessMissing } from "./errors.ts";
import { listAll } from "./list.ts";

const CsiNodeSchema = v.object({ spec: v.object({ drivers: v.nullish(v.array(v.object({ name: v.string() }))) }) });

/** The CSI drivers in the node's CSINode object. */
export async function readCsiDrivers(api: Api, node: string): Promise<readonly string[]> {
  const path = `/apis/storage.k8s.io/v1/csinodes/${encodeURIComponent(node)}`;
  const { spec } = await getObject(api, path, CsiNodeSchema, "CSINode", CACHED);
  return (spec.drivers ?? []).map(({ name }) => name);
}

/**
 * Pods that mount a driver's directory like its node plugin, without a sign that they register the driver: a plugin may
 * register it without a sidecar of that name and through a mount of kubelet's whole directory.
 */
export function mayBePlugins(pods: readonly ApiPod[]): readonly ApiPod[] {
  const claimed = new Set(pods.flatMap(({ csi }) => (csi?.registers === true ? csi.dirs : [])));
  return pods.filter(
    ({ csi, controller }) => controller === "DaemonSet" && csi?.dirs.some((dir) => !claimed.has(dir)) === true,
  );
}

/** Marks pods as node plugins whose driver is registered here and which no other pod registers. */
export function withPlugins(pods: readonly ApiPod[], drivers: readonly string[]): readonly ApiPod[] {
  const candidates = new Set(mayBePlugins(pods));
  return pods.map((pod) => {
    const { csi } = pod;
    if (csi === undefined || !candidates.has(pod)) return pod;
    const isPlugin = csi.dirs.some((dir) => drivers.includes(dir.slice(dir.lastIndexOf("/") + 1)));
    return isPlugin ? { ...pod, csi: { ...csi, registers: true } } : pod;
  });
}

/** Each costs requests. A node that waits for more volumes than this has one common cause. */
const MAX_FOLLOWED = 20;

/** Each needs requests for a volume, an attacher, and a node that has it. */
export const MAX_LOOKUPS = 3 * MAX_FOLLOWED;

/** Limits the requests for volumes and attachers of attachments. */
export interface Following {
  /** The maximum number of requests for single objects; called before the first one. */
  readonly most: () => number;
  /** Cache of volumes: the claim of a volume does not change while it is in use. */
  readonly volumes: Map<string, ApiVolume>;
  readonly attachments: ReadAttachments;
}

interface Waiting {
  readonly phase?: string;
  readonly terminating: boolean;
  readonly claims?: readonly string[];
}

/**
 * The volumes that this node waits for; undefined if no request was needed. Kubelet's own credentials may not read
 * them.
 */
export async function readUnattached(
  api: Api,
  node: { readonly name: string; readonly volumes?: NodeVolumes },
  pods: readonly Waiting[],
  following: Following,
): Promise<readonly UnattachedVolume[] | undefined> {
  const isAwaited = pods.some(
    ({ phase, terminating, claims }) => claims !== undefined && (phase === "Pending" || terminating),
  );
  const known = await following.attachments(api, {
    node: node.name,
    isAwaited,
    most: following.most(),
    volumes: node.volumes,
  });
  if (known === undefined) return undefined;
  const here = known.here
    .filter(isUnsettled)
    .toSorted((one, other) => Number(one.attached) - Number(other.attached))
    .slice(0, MAX_FOLLOWED);
  if (!isAwaited && here.length === 0) return undefined;
  const ask = withinBudget(following.most());
  // Volumes first: they are cached, so the next scan can use its requests for the rest.
  const volumes = await readEach(
    here.flatMap(({ volume }) => volume ?? []),
    async (name) => {
      const volume = following.volumes.get(name) ?? (await ask(() => getVolume(api, name)));
      if (!(volume instanceof KubeError)) following.volumes.set(name, volume);
      return volume;
    },
  );
  const leases = await readEach(
    here.map(({ attacher }) => attacher),
    (attacher) => ask(() => attacherLease(api, attacher)),
  );
  const elsewhere = ({ volume = "" }: Pick<UnattachedVolume, "volume">): readonly AttachedElsewhere[] => {
    // A volume for several nodes waits for none of them.
    return unlessError(volumes.get(volume))?.shared ? [] : (known.elsewhere.get(volume) ?? []);
  };
  const nodes = await readEach(
    here.flatMap((one) => elsewhere(one).map((other) => other.node)),
    (name) => ask(() => readHolderNode(api, name)),
  );
  const inUse = namesOf(node.volumes?.inUse ?? [], node.name);
  return here.map((one) => {
    const volume = one.volume === undefined ? undefined : volumes.get(one.volume);
    const lease = leases.get(one.attacher);
    return {
      ...one,
      inUse: inUse.has(one.name),
      claim: unlessError(volume)?.claim,
      holders: elsewhere(one).map((other) => holderOf(other, nodes.get(other.node))),
      lease: unlessError(lease),
      unknown: [
        ...(volume instanceof KubeError ? [`its claim is unknown: ${volume.message}`] : []),
        ...(lease instanceof KubeError ? [`whether its attacher works is unknown: ${lease.message}`] : []),
      ],
    };
  });
}

async function readEach<T>(
  names: readonly string[],
  one: (name: string) => Promise<T | KubeError>,
): Promise<ReadonlyMap<string, T | KubeError>> {
  return new Map(await Promise.all([...new Set(names)].map(async (name) => [name, await one(name)] as const)));
}

function withinBudget(most: number): <T>(asking: () => Promise<T>) => Promise<T | KubeError> {
  let left = most;
  return async (asking) => {
    left -= 1;
    if (left < 0) return new KubeError("busy", "it was not asked for this time, to spare the API server");
    return await orKubeError(asking());
  };
}

const VolumeSchema = v.object({
  spec: v.object({
    accessModes: v.nullish(v.array(v.string())),
    claimRef: v.nullish(v.object({ namespace: v.nullish(v.string()), name: v.nullish(v.string()) })),
  }),
});

export interface ApiVolume {
  readonly claim?: ClaimName;
  /** The driver can attach it to several nodes at once. */
  readonly shared: boolean;
}

const SHARED_MODES: ReadonlySet<string> = new Set(["ReadWriteMany", "ReadOnlyMany"]);

async function getVolume(api: Api, name: string): Promise<ApiVolume> {
  const path = `/api/v1/persistentvolumes/${encodeURIComponent(name)}`;
  const { claimRef, accessModes } = (await getObject(api, path, VolumeSchema, "PersistentVolume")).spec;
  return {
    shared: accessModes?.some((mode) => SHARED_MODES.has(mode)) === true,
    claim: claimRef?.namespace && claimRef.name ? { namespace: claimRef.namespace, name: claimRef.name } : undefined,
  };
}

const HolderNodeSchema = v.object({
  spec: v.nullish(v.object({ unschedulable: v.nullish(v.boolean()) })),
  status: v.nullish(
    v.object({
      conditions: v.nullish(v.array(v.object({ type: v.string(), status: v.string() }))),
      volumesInUse: v.nullish(v.array(v.string())),
    }),
  ),
});

type HolderNode =
  | { readonly kind: "gone" }
  | { readonly kind: "there"; readonly node: v.InferOutput<typeof HolderNodeSchema> };

async function readHolderNode(api: Api, name: string): Promise<HolderNode> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
  const node = await unlessMissing(getObject(api, path, HolderNodeSchema, "node", CACHED));
  return node === undefined ? { kind: "gone" } : { kind: "there", node };
}

function holderOf({ name, node, deleting }: AttachedElsewhere, read: HolderNode | KubeError | undefined): Holder {
  if (read === undefined || read instanceof KubeError) return { node, deleting };
  if (read.kind === "gone") return { node, deleting, state: { kind: "gone" } };
  const { spec, status } = read.node;
  return {
    node,
    deleting,
    state: {
      kind: "there",
      ready: status?.conditions?.some((one) => one.type === "Ready" && one.status === "True") === true,
      cordoned: spec?.unschedulable === true,
      inUse: namesOf(csiVolumes(status?.volumesInUse ?? []), node).has(name),
    },
  };
}

const LeaseSchema = v.object({
  metadata: v.object({ name: v.string() }),
  spec: v.nullish(
    v.object({
      holderIdentity: v.nullish(v.string()),
      leaseDurationSeconds: v.nullish(v.number()),
      renewTime: v.nullish(v.string()),
    }),
  ),
});

/**
 * The lease that external-attacher renews, by the name that it derives from the driver's, in a namespace that only it
 * knows. Undefined when the attacher holds none: it runs without leader election, or not at all.
 */
async function attacherLease(api: Api, attacher: string): Promise<AttacherLease | undefined> {
  const driver = attacher.replace(/[^a-zA-Z0-9-]/g, "-");
  const name = `external-attacher-leader-${driver.endsWith("-") ? `${driver}X` : driver}`;
  const query = { fieldSelector: `metadata.name=${name}` };
  const leases = await listAll(api, { path: "/apis/coordination.k8s.io/v1/leases", query, item: LeaseSchema });
  const held = leases.flatMap(({ metadata, spec }) => {
    // A holder that shuts down orderly releases its lease by clearing the name.
    if (metadata.name !== name || !spec?.holderIdentity || !spec.renewTime) return [];
    const durationSeconds = spec.leaseDurationSeconds ?? 15;
    return [{ holder: spec.holderIdentity, durationSeconds, renewedAt: new Date(spec.renewTime) }];
  });
  return held.toSorted((one, other) => other.renewedAt.getTime() - one.renewedAt.getTime())[0];
}
