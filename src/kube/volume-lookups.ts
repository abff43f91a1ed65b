import * as v from "valibot";
import { type Api, CACHED, getObject } from "./api.ts";
import { type ClaimName, type Lease, type NodeVolume, PODS } from "./cluster-facts.ts";
import { KubeError, orKubeError, unlessMissing } from "./errors.ts";
import { listAll } from "./list.ts";
import { claimsOf, PodSchema } from "./objects.ts";

export interface Answers {
  readonly leases: Recent<Lease | undefined>;
  readonly nodes: Recent<HolderNode>;
  readonly users: Recent<readonly string[]>;
  /** The volume that a claim is bound to. */
  readonly claims: Recent<string | undefined>;
  /** Whether the volumes of a driver are attached at all. */
  readonly drivers: Recent<boolean>;
}

export function noAnswers(): Answers {
  return { leases: recent(), nodes: recent(), users: recent(), claims: recent(), drivers: recent() };
}

/** A question, and when it was last answered: 0 for never. */
interface Due {
  readonly answeredAtMs: number;
  readonly ask: () => Promise<void>;
}

type Recent<T> = ReturnType<typeof recent<T>>;

/** An answer this recent is not asked for again. */
const RECENT_MS = 30_000;
const MAX_ANSWERS = 200;

function recent<T>() {
  const answers = new Map<string, { readonly answer: T | KubeError; readonly atMs: number }>();
  return {
    due: (names: readonly string[], read: (name: string) => Promise<T>): readonly Due[] =>
      [...new Set(names)].flatMap((name) => {
        const known = answers.get(name);
        if (known !== undefined && performance.now() - known.atMs < RECENT_MS) return [];
        const ask = async (): Promise<void> => {
          if (answers.size >= MAX_ANSWERS) answers.clear();
          answers.set(name, { answer: await orKubeError(read(name)), atMs: performance.now() });
        };
        return [{ answeredAtMs: known?.atMs ?? 0, ask }];
      }),
    /** An older answer than this counts as none. */
    answer: (name: string, withinMs: number = Number.POSITIVE_INFINITY): T | KubeError => {
      const known = answers.get(name);
      return known === undefined || performance.now() - known.atMs > withinMs ? notAsked() : known.answer;
    },
  };
}

export function notAsked(): KubeError {
  return new KubeError("busy", "it was not asked for this time, to spare the API server");
}

export function withinBudget(most: number) {
  let left = most;
  const ask = async <T>(asking: () => Promise<T>): Promise<T | KubeError> => {
    left -= 1;
    return left < 0 ? notAsked() : await orKubeError(asking());
  };
  /** As many as may be asked, those that were not answered for longest first. */
  const askDue = async (due: readonly Due[]): Promise<void> => {
    const oldest = due.toSorted((one, other) => one.answeredAtMs - other.answeredAtMs).slice(0, Math.max(0, left));
    left -= oldest.length;
    await Promise.all(oldest.map((one) => one.ask()));
  };
  return { ask, askDue };
}

export type Budget = ReturnType<typeof withinBudget>;

const VolumeSchema = v.object({
  spec: v.object({
    accessModes: v.nullish(v.array(v.string())),
    claimRef: v.nullish(v.object({ namespace: v.nullish(v.string()), name: v.nullish(v.string()) })),
    csi: v.nullish(v.object({ driver: v.nullish(v.string()), volumeHandle: v.nullish(v.string()) })),
  }),
});

export interface ApiVolume {
  readonly claim?: ClaimName;
  readonly csi?: NodeVolume;
  /** The driver can attach it to several nodes at once. */
  readonly shared: boolean;
}

const SHARED_MODES: ReadonlySet<string> = new Set(["ReadWriteMany", "ReadOnlyMany"]);

export async function getVolume(api: Api, name: string): Promise<ApiVolume> {
  const path = `/api/v1/persistentvolumes/${encodeURIComponent(name)}`;
  const { claimRef, accessModes, csi } = (await getObject(api, path, VolumeSchema, "PersistentVolume")).spec;
  return {
    shared: accessModes?.some((mode) => SHARED_MODES.has(mode)) === true,
    csi: csi?.driver && csi.volumeHandle ? { driver: csi.driver, handle: csi.volumeHandle } : undefined,
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

export type HolderNode =
  | { readonly kind: "gone" }
  | { readonly kind: "there"; readonly node: v.InferOutput<typeof HolderNodeSchema> };

export async function readHolderNode(api: Api, name: string): Promise<HolderNode> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
  const node = await unlessMissing(getObject(api, path, HolderNodeSchema, "node", CACHED));
  return node === undefined ? { kind: "gone" } : { kind: "there", node };
}

const ClaimSchema = v.object({ spec: v.object({ volumeName: v.nullish(v.string()) }) });

export async function readBoundVolume(api: Api, key: string): Promise<string | undefined> {
  const [namespace = "", name = ""] = key.split("/");
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims/${encodeURIComponent(name)}`;
  const claim = await unlessMissing(getObject(api, path, ClaimSchema, "PersistentVolumeClaim"));
  return claim?.spec.volumeName || undefined;
}

const DriverSchema = v.object({ spec: v.object({ attachRequired: v.nullish(v.boolean()) }) });

/** Without a CSIDriver object kubelet takes the volumes for such that are attached. */
export async function readAttachRequired(api: Api, name: string): Promise<boolean> {
  const path = `/apis/storage.k8s.io/v1/csidrivers/${encodeURIComponent(name)}`;
  const driver = await unlessMissing(getObject(api, path, DriverSchema, "CSIDriver"));
  return driver?.spec.attachRequired !== false;
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

/** With an older answer, a holder that renews its lease would appear silent. */
export const LEASE_VALID_MS = 45_000;
export const CONTROLLER_LEASE = "kube-controller-manager";

/** The name that external-attacher derives from the driver's. */
export function attacherLeaseName(attacher: string): string {
  const driver = attacher.replace(/[^a-zA-Z0-9-]/g, "-");
  return `external-attacher-leader-${driver.endsWith("-") ? `${driver}X` : driver}`;
}

/**
 * A lease of this name in a namespace that only its holder knows. Undefined when there is none: its holder runs without
 * leader election, or not at all.
 */
export async function leaseNamed(api: Api, name: string): Promise<Lease | undefined> {
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

/** Names of the pods that use a claim on another node; the key is `<node> <namespace>/<claim>`. */
export async function readUsers(api: Api, key: string): Promise<readonly string[]> {
  const [node = "", claim = ""] = key.split(" ");
  const [namespace = "", name = ""] = claim.split("/");
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  const pods = await listAll(api, { path, query: PODS.query(node), item: PodSchema });
  return pods.flatMap((pod) => {
    const isUser = pod.spec?.nodeName === node && claimsOf(pod).includes(name);
    return isUser ? [`${pod.metadata.namespace}/${pod.metadata.name}`] : [];
  });
}
