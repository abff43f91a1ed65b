import * as v from "valibot";
import { type Api, CACHED, getObject } from "./api.ts";
import { type AttachedElsewhere, getAttachment, isUnsettled, namesOf, type ReadAttachments } from "./attachments.ts";
import {
  type ApiAttachment,
  type ApiPod,
  type ClaimName,
  csiVolumes,
  type Holder,
  type Lease,
  type NodeVolumes,
  PODS,
  type PodEvent,
  type UnattachedVolume,
} from "./cluster-facts.ts";
import { KubeError, orKubeError, unlessError, unlessMissing } from "./errors.ts";
import { listAll } from "./list.ts";
import { claimsOf, PodSchema } from "./objects.ts";

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
  /** What was answered about holders and leases: a scan that may not ask again uses the last answer. */
  readonly answers: Answers;
}

interface Answers {
  readonly leases: Recent<Lease | undefined>;
  readonly nodes: Recent<HolderNode>;
  readonly users: Recent<readonly string[]>;
}

export function noAnswers(): Answers {
  return { leases: recent(), nodes: recent(), users: recent() };
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
        const answeredAtMs = answers.get(name)?.atMs ?? 0;
        if (answeredAtMs > performance.now() - RECENT_MS && answeredAtMs > 0) return [];
        const ask = async (): Promise<void> => {
          if (answers.size >= MAX_ANSWERS) answers.clear();
          answers.set(name, { answer: await orKubeError(read(name)), atMs: performance.now() });
        };
        return [{ answeredAtMs, ask }];
      }),
    answer: (name: string): T | KubeError => {
      const known = answers.get(name);
      return known === undefined ? notAsked() : known.answer;
    },
  };
}

function notAsked(): KubeError {
  return new KubeError("busy", "it was not asked for this time, to spare the API server");
}

interface Waiting {
  readonly namespace: string;
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
  { pods, events }: { readonly pods: readonly Waiting[]; readonly events: readonly PodEvent[] },
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
  const unsettled = new Set(known.here.filter(isUnsettled).map(({ volume }) => volume));
  const here = known.here
    .filter((one) => isUnsettled(one) || (known.elsewhere.has(one.volume ?? "") && !unsettled.has(one.volume)))
    .toSorted((one, other) => urgency(one) - urgency(other))
    .slice(0, MAX_FOLLOWED);
  if (!isAwaited && here.length === 0) return undefined;
  const { ask, left } = withinBudget(following.most());
  // Volumes first: they are cached, so the next scan can use its requests for the rest.
  const readVolumes = (names: readonly string[]) =>
    readEach(names, async (name) => {
      const volume = following.volumes.get(name) ?? (await ask(() => getVolume(api, name)));
      if (!(volume instanceof KubeError)) following.volumes.set(name, volume);
      return volume;
    });
  const ofHere = await readVolumes(here.flatMap(({ volume }) => volume ?? []));
  const waiting = claimsThatWait(pods, [...ofHere.values()]);
  const candidates = waiting.size === 0 ? [] : mayBeAwaited(known, events);
  const volumes = new Map([...ofHere, ...(await readVolumes(candidates))]);
  const isShared = (volume = "") => unlessError(volumes.get(volume))?.shared === true;
  const others = candidates.flatMap((volume) => {
    const claim = unlessError(volumes.get(volume))?.claim;
    const [first] = known.elsewhere.get(volume) ?? [];
    return claim === undefined || !waiting.has(keyOf(claim)) || isShared(volume) ? [] : (first?.name ?? []);
  });
  const read = await readEach(others, (name) => ask(() => getAttachment(api, name)));
  const awaited = [...read.values()].flatMap((one) => {
    const attachment = unlessError(one);
    return attachment?.attached === true ? [{ ...attachment, awaited: true as const }] : [];
  });
  const followed = [...here.filter((one) => isUnsettled(one) || !isShared(one.volume)), ...awaited];
  if (followed.length === 0) return [];
  const elsewhere = ({ volume = "" }: Pick<UnattachedVolume, "volume">): readonly AttachedElsewhere[] =>
    // A volume for several nodes waits for none of them.
    isShared(volume) ? [] : (known.elsewhere.get(volume) ?? []);
  const { leases, nodes, users } = following.answers;
  const holders = followed.flatMap((one) => {
    const claims = keysOf(unlessError(volumes.get(one.volume ?? ""))?.claim);
    return elsewhere(one).map((other) => ({ ...other, claims }));
  });
  const due = [
    ...leases.due([...followed.map(({ attacher }) => attacherLeaseName(attacher)), CONTROLLER_LEASE], (name) =>
      leaseNamed(api, name),
    ),
    ...nodes.due(
      holders.map((other) => other.node),
      (name) => readHolderNode(api, name),
    ),
    ...users.due(
      holders.flatMap((other) => other.claims.map((claim) => `${other.node} ${claim}`)),
      (key) => readUsers(api, key),
    ),
  ];
  const oldestFirst = due.toSorted((one, other) => one.answeredAtMs - other.answeredAtMs);
  await Promise.all(oldestFirst.slice(0, Math.max(0, left())).map((one) => one.ask()));
  const controller = leases.answer(CONTROLLER_LEASE);
  const inUse = namesOf(node.volumes?.inUse ?? [], node.name);
  return followed.map((one) => {
    const volume = one.volume === undefined ? undefined : volumes.get(one.volume);
    const claim = unlessError(volume)?.claim;
    const lease = leases.answer(attacherLeaseName(one.attacher));
    return {
      ...one,
      inUse: inUse.has(one.name),
      claim,
      holders: elsewhere(one).map((other) => ({
        ...holderOf(other, nodes.answer(other.node)),
        pods: claim && unlessError(users.answer(`${other.node} ${keyOf(claim)}`)),
      })),
      lease: unlessError(lease),
      controllerLease: unlessError(controller),
      unknown: [
        ...(volume instanceof KubeError ? [`its claim is unknown: ${volume.message}`] : []),
        ...(lease instanceof KubeError ? [`whether its attacher works is unknown: ${lease.message}`] : []),
      ],
    };
  });
}

/** Not attached, then being deleted, then attached twice. */
function urgency({ attached, deletedAt }: ApiAttachment): number {
  if (!attached) return 0;
  return deletedAt === undefined ? 2 : 1;
}

function keyOf({ namespace, name }: ClaimName): string {
  return `${namespace}/${name}`;
}

/** The claims of pods that have not started, apart from those of known volumes. */
function claimsThatWait(pods: readonly Waiting[], volumes: readonly (ApiVolume | KubeError)[]): ReadonlySet<string> {
  const known = new Set(volumes.flatMap((volume) => keysOf(unlessError(volume)?.claim)));
  const waiting = pods
    .filter(({ phase, terminating }) => phase === "Pending" && !terminating)
    .flatMap(({ namespace, claims = [] }) => claims.map((name) => keyOf({ namespace, name })));
  return new Set(waiting.filter((key) => !known.has(key)));
}

function keysOf(claim: ClaimName | undefined): readonly string[] {
  return claim === undefined ? [] : [keyOf(claim)];
}

const NAMED_VOLUME = /for volume "([^"]{1,253})"/;

/**
 * Volumes that only other nodes have: while one has it, no attachment is made for this node. Those that an event about a
 * waiting pod names come first; whose each is, its PersistentVolume shows.
 */
function mayBeAwaited(
  { here, elsewhere }: Pick<NonNullable<Awaited<ReturnType<ReadAttachments>>>, "here" | "elsewhere">,
  events: readonly PodEvent[],
): readonly string[] {
  const own = new Set(here.map(({ volume }) => volume));
  const named = new Set(events.flatMap(({ message }) => NAMED_VOLUME.exec(message)?.[1] ?? []));
  return [...elsewhere.keys()]
    .filter((volume) => !own.has(volume))
    .toSorted((one, other) => Number(named.has(other)) - Number(named.has(one)))
    .slice(0, MAX_FOLLOWED);
}

async function readEach<T>(
  names: readonly string[],
  one: (name: string) => Promise<T | KubeError>,
): Promise<ReadonlyMap<string, T | KubeError>> {
  return new Map(await Promise.all([...new Set(names)].map(async (name) => [name, await one(name)] as const)));
}

function withinBudget(most: number) {
  let left = most;
  const ask = async <T>(asking: () => Promise<T>): Promise<T | KubeError> => {
    left -= 1;
    return left < 0 ? notAsked() : await orKubeError(asking());
  };
  return { ask, left: () => left };
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

function holderOf({ name, node, deleting }: AttachedElsewhere, read: HolderNode | KubeError): Holder {
  if (read instanceof KubeError) return { node, deleting };
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

const CONTROLLER_LEASE = "kube-controller-manager";

/** The name that external-attacher derives from the driver's. */
function attacherLeaseName(attacher: string): string {
  const driver = attacher.replace(/[^a-zA-Z0-9-]/g, "-");
  return `external-attacher-leader-${driver.endsWith("-") ? `${driver}X` : driver}`;
}

/**
 * A lease of this name in a namespace that only its holder knows. Undefined when there is none: its holder runs without
 * leader election, or not at all.
 */
async function leaseNamed(api: Api, name: string): Promise<Lease | undefined> {
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
async function readUsers(api: Api, key: string): Promise<readonly string[]> {
  const [node = "", claim = ""] = key.split(" ");
  const [namespace = "", name = ""] = claim.split("/");
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  const pods = await listAll(api, { path, query: PODS.query(node), item: PodSchema });
  return pods.flatMap((pod) => {
    const isUser = pod.spec?.nodeName === node && claimsOf(pod).includes(name);
    return isUser ? [`${pod.metadata.namespace}/${pod.metadata.name}`] : [];
  });
}
