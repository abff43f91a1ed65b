import * as v from "valibot";
import { type Api, CACHED, getObject } from "./api.ts";
import {
  type AttachedElsewhere,
  attachmentName,
  getAttachment,
  isUnsettled,
  namesOf,
  type ReadAttachments,
} from "./attachments.ts";
import {
  type ApiAttachment,
  type ApiPod,
  type ClaimName,
  csiVolumes,
  type Holder,
  type NodeVolumes,
  type PodEvent,
  type UnattachedVolume,
} from "./cluster-facts.ts";
import { KubeError, unlessError } from "./errors.ts";
import {
  type Answers,
  type ApiVolume,
  attacherLeaseName,
  type Budget,
  CONTROLLER_LEASE,
  getVolume,
  type HolderNode,
  LEASE_VALID_MS,
  leaseNamed,
  notAsked,
  readAttachRequired,
  readBoundVolume,
  readHolderNode,
  readUsers,
  withinBudget,
} from "./volume-lookups.ts";

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
  /** An agent's role does not allow to read claims. */
  readonly readsClaims: boolean;
}

interface Waiting {
  readonly namespace: string;
  readonly waitingSince?: Date;
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
  const budget = withinBudget(following.most());
  const { ask } = budget;
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
  const explained = new Set([...volumes.values()].flatMap((volume) => keysOf(unlessError(volume)?.claim)));
  const unasked = [...waiting].filter((key) => !explained.has(key)).slice(0, MAX_UNASKED);
  const missing =
    known.current && following.readsClaims
      ? await readMissing(api, { node: node.name, claims: unasked, pods, known }, following, budget)
      : [];
  for (const { volume, read: found } of missing) volumes.set(volume, found);
  const followed = [
    ...here.filter((one) => isUnsettled(one) || !isShared(one.volume)),
    ...awaited,
    ...missing.map(({ read: _found, ...one }) => one),
  ];
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
  await budget.askDue(due);
  const controller = leases.answer(CONTROLLER_LEASE, LEASE_VALID_MS);
  const inUse = namesOf(node.volumes?.inUse ?? [], node.name);
  return followed.map((one) => {
    const volume = one.volume === undefined ? undefined : volumes.get(one.volume);
    const claim = unlessError(volume)?.claim;
    const lease = leases.answer(attacherLeaseName(one.attacher), LEASE_VALID_MS);
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

/** Each costs three requests. */
const MAX_UNASKED = 5;

interface Unasked {
  readonly node: string;
  readonly claims: readonly string[];
  readonly pods: readonly Waiting[];
  readonly known: NonNullable<Awaited<ReturnType<ReadAttachments>>>;
}

/** Volumes of claims that wait, which are attached nowhere and for which no attachment has been requested. */
async function readMissing(
  api: Api,
  { node, claims, pods, known }: Unasked,
  { answers }: Following,
  { ask, askDue }: Budget,
) {
  await askDue(answers.claims.due(claims, (key) => readBoundVolume(api, key)));
  const bound = claims.flatMap((key) => {
    const volume = unlessError(answers.claims.answer(key));
    return volume === undefined || known.elsewhere.has(volume) || known.here.some((one) => one.volume === volume)
      ? []
      : [{ key, volume }];
  });
  const volumes = await readEach(
    bound.map(({ volume }) => volume),
    (name) => ask(() => getVolume(api, name)),
  );
  const drivers = [...volumes.values()].flatMap((volume) => unlessError(volume)?.csi?.driver ?? []);
  await askDue(answers.drivers.due(drivers, (name) => readAttachRequired(api, name)));
  return bound.flatMap(({ key, volume }) => {
    const read = unlessError(volumes.get(volume) ?? notAsked());
    const times = pods.flatMap(({ namespace, claims: own = [], waitingSince }) =>
      own.some((name) => keyOf({ namespace, name }) === key) ? (waitingSince ?? []) : [],
    );
    const createdAt = times.toSorted((one, other) => one.getTime() - other.getTime())[0];
    if (read?.csi === undefined || createdAt === undefined) return [];
    if (unlessError(answers.drivers.answer(read.csi.driver)) !== true) return [];
    const name = attachmentName(read.csi, node);
    const { driver: attacher } = read.csi;
    return [{ name, attacher, node, volume, attached: false, createdAt, finalizers: [], missing: true as const, read }];
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
