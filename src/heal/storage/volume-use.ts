import type { Source } from "../../host/source.ts";
import type { ApiAttachment } from "../../kube/cluster-facts.ts";
import { attachmentName } from "../../kube/volume-attachments.ts";
import type { VolumePod, VolumeUsers } from "../../kube/volume-users.ts";
import type { ApiVolume } from "../../kube/volumes.ts";
import type { KubeletVolume } from "../../snapshot/kubelet-volumes.ts";
import type { MountEntry } from "../../snapshot/mount-tables.ts";
import type { VolumeDevices } from "../../snapshot/volume-devices.ts";
import { sha256Of } from "../files/file-identity.ts";

/** A mount that the runtime made for a container that has not ended. */
export interface ContainerMount {
  readonly container: string;
  readonly pod: string;
  readonly hostPath: string;
}

/** Everything that can show whether a volume is in use on this node. */
export interface VolumeUseFacts {
  readonly users: VolumeUsers;
  readonly kubelet: Source<readonly KubeletVolume[]>;
  readonly mounts: Source<readonly MountEntry[]>;
  readonly containers: Source<readonly ContainerMount[]>;
  readonly devices: Source<VolumeDevices>;
}

export type InUseCode =
  | "pod-uses-volume"
  | "pod-elsewhere-uses-volume"
  | "attached-elsewhere"
  | "attached-under-another-name"
  | "node-reports-in-use"
  | "kubelet-has-record"
  | "mounted"
  | "container-mounts-volume"
  | "device-open";

export type UnreadCode = "kubelet-records-unread" | "mounts-unread" | "containers-unread" | "devices-unread";

export type VolumeUse =
  | {
      readonly kind: "unused";
      /** Pods of this node that wait for it. */
      readonly awaitedBy: readonly string[];
    }
  | { readonly kind: "in-use"; readonly code: InUseCode; readonly reason: string }
  | { readonly kind: "unknown"; readonly code: UnreadCode; readonly reason: string };

/**
 * Whether a volume is in use, from all sources. Each source can miss a use that another shows, so one use is enough,
 * and one unreadable source makes the result unknown.
 */
export function volumeUse(identity: VolumeIdentity, facts: VolumeUseFacts): VolumeUse {
  return (
    usedByPod(identity, facts.users) ??
    attachedOtherwise(identity, facts.users) ??
    fromSource(facts.kubelet, "kubelet-records-unread", (records) => usedByRecord(identity, records)) ??
    fromSource(facts.mounts, "mounts-unread", (mounts) => mounted(identity, mounts, facts.devices)) ??
    fromSource(facts.containers, "containers-unread", (mounts) => usedByContainer(identity, mounts)) ??
    fromSource(facts.devices, "devices-unread", usedAsDevice) ??
    reportedByNode(identity, facts.users) ?? { kind: "unused", awaitedBy: waitingPods(identity, facts.users) }
  );
}

type Answer = Exclude<VolumeUse, { kind: "unused" }> | undefined;

function inUse(code: InUseCode, reason: string): Answer {
  return { kind: "in-use", code, reason };
}

function fromSource<T>(source: Source<T>, code: UnreadCode, decide: (value: T) => Answer): Answer {
  if (source.status === "read") return decide(source.value);
  const why = source.status === "failed" ? source.error.message : source.reason;
  return { kind: "unknown", code, reason: `whether the volume is in use here is unknown: ${why}` };
}

function usedByPod(identity: VolumeIdentity, { pods }: VolumeUsers): Answer {
  for (const pod of pods) {
    const name = nameFor(pod, identity);
    if (name === undefined || pod.stage === "finished" || pod.node === undefined) continue;
    if (pod.node !== identity.node) {
      if (isShared(identity)) continue;
      return inUse("pod-elsewhere-uses-volume", `the pod ${pod.namespace}/${pod.name} uses the volume on ${pod.node}`);
    }
    // A pod that waits for the attachment does not use it yet.
    if (pod.stage === "waiting") continue;
    return inUse(
      "pod-uses-volume",
      `the pod ${pod.namespace}/${pod.name} on this node uses the volume (${name}) and has not finished`,
    );
  }
  return undefined;
}

/** The pod's name of the volume; undefined if the pod does not use it. */
function nameFor({ namespace, uid, claims, inline }: VolumePod, { volumes, driver, handles }: VolumeIdentity) {
  const volume = volumes.find(({ claim }) => claim?.namespace === namespace && claims.includes(claim.name));
  if (volume !== undefined) return `claim ${volume.claim?.name}, PersistentVolume ${volume.name}`;
  const inPlace = inline.find(
    (one) =>
      one.driver === driver &&
      (handles.includes(inlineHandle(uid, one.name)) || one.attributes.some((value) => handles.includes(value))),
  );
  return inPlace === undefined ? undefined : `inline volume ${inPlace.name}`;
}

/** Attached to several nodes at once by design: each node has its own attachment. */
function isShared({ volumes }: VolumeIdentity): boolean {
  return volumes.every(({ shared }) => shared);
}

function attachedOtherwise(identity: VolumeIdentity, { attachments }: VolumeUsers): Answer {
  const names = new Set(identity.volumes.map(({ name }) => name));
  const others = attachments.filter(
    ({ name, volume, attached }) =>
      attached && name !== identity.attachment && volume !== undefined && names.has(volume),
  );
  const here = others.find(({ node }) => node === identity.node);
  if (here !== undefined)
    return inUse(
      "attached-under-another-name",
      `the same storage is attached to this node by ${here.name} for ${here.volume}: it would be detached, too`,
    );
  const elsewhere = isShared(identity) ? undefined : others[0];
  return elsewhere === undefined
    ? undefined
    : inUse(
        "attached-elsewhere",
        `the volume is attached to ${elsewhere.node}: it must be detached there first, which deleting this does not do`,
      );
}

/** Kubelet also reports volumes that it is about to mount: then a pod waits for it, and the report proves nothing. */
function reportedByNode(identity: VolumeIdentity, users: VolumeUsers): Answer {
  const reported = identity.handles.find((handle) =>
    users.reportedInUse.includes(`kubernetes.io/csi/${identity.driver}^${handle}`),
  );
  if (reported === undefined || waitingPods(identity, users).length > 0) return undefined;
  return inUse("node-reports-in-use", `kubelet reports ${reported} in the node's status.volumesInUse`);
}

function waitingPods(identity: VolumeIdentity, { pods }: VolumeUsers): readonly string[] {
  return pods
    .filter((pod) => pod.stage === "waiting" && pod.node === identity.node && nameFor(pod, identity) !== undefined)
    .map(({ namespace, name }) => `${namespace}/${name}`);
}

function usedByRecord(identity: VolumeIdentity, records: readonly KubeletVolume[]): Answer {
  const names = new Set([...identity.volumes.map(({ name }) => name), ...identity.handles.map(sha256Of)]);
  const found = records.find(({ name, data }) => {
    if (data?.driver !== undefined && data.driver !== identity.driver) return false;
    if (names.has(name) || (data?.specName !== undefined && names.has(data.specName))) return true;
    return (
      data?.attachment === identity.attachment || (data?.handle !== undefined && identity.handles.includes(data.handle))
    );
  });
  if (found === undefined) return undefined;
  const whose = found.podUid === undefined ? "" : ` for the pod with uid ${found.podUid}`;
  return inUse("kubelet-has-record", `kubelet has set the volume up${whose} and not torn it down: ${found.path}`);
}

function mounted(identity: VolumeIdentity, mounts: readonly MountEntry[], devices: Source<VolumeDevices>): Answer {
  const numbers = new Set(devices.status === "read" ? devices.value.numbers : []);
  const found = mounts.find(
    ({ device, root, point, source }) =>
      numbers.has(device) || [point, root, `/${source.replaceAll(":", "/")}`].some((path) => isPathOf(identity, path)),
  );
  return found === undefined
    ? undefined
    : inUse("mounted", `the volume is mounted here, at ${found.point} as process ${found.pid} sees it`);
}

function usedByContainer(identity: VolumeIdentity, mounts: readonly ContainerMount[]): Answer {
  const found = mounts.find(({ hostPath }) => isPathOf(identity, hostPath));
  return found === undefined
    ? undefined
    : inUse(
        "container-mounts-volume",
        `the container ${found.container} of ${found.pod} was given the volume (${found.hostPath}) and has not ended`,
      );
}

function usedAsDevice({ openers }: VolumeDevices): Answer {
  const [opener] = openers;
  return opener && inUse("device-open", `process ${opener.pid} has the volume's device ${opener.path} open`);
}

/** A short handle like "data" matches many directories: it counts only below kubelet's own. */
const SHORTEST_HANDLE = 5;
const KUBELETS_PATH = /\/kubernetes\.io~csi\/|\/kubernetes\.io\/csi\/|\/volume-subpaths\//;

/**
 * Paths contain the PersistentVolume's name, the handle (a driver's own directories) or its hash (kubelet's, since
 * 1.24).
 */
function isPathOf({ volumes, handles }: VolumeIdentity, path: string): boolean {
  const isKubelets = KUBELETS_PATH.test(path);
  const has = (name: string): boolean => `${path}/`.includes(`/${name}/`);
  return (
    handles.some(
      (handle) => has(sha256Of(handle)) || ((isKubelets || handle.length >= SHORTEST_HANDLE) && has(handle)),
    ) || volumes.some(({ name }) => (isKubelets || name.length >= SHORTEST_HANDLE) && has(name))
  );
}

/** All names of one CSI volume on one node. */
export interface VolumeIdentity {
  readonly driver: string;
  readonly node: string;
  readonly attachment: string;
  /** Of its storage; more than one if its PersistentVolume was replaced by another. */
  readonly handles: readonly string[];
  /** Every PersistentVolume with that driver and handle. */
  readonly volumes: readonly ApiVolume[];
}

export type Identified =
  | { readonly kind: "identified"; readonly identity: VolumeIdentity }
  | { readonly kind: "unidentified"; readonly reason: string };

/** The volume of an attachment. Two PersistentVolumes may refer to the same storage. */
export function identify(attachment: ApiAttachment, all: readonly ApiVolume[]): Identified {
  const { attacher: driver, node, name } = attachment;
  const own = all.find((volume) => volume.name === attachment.volume);
  if (own === undefined)
    return unidentified(`the PersistentVolume ${attachment.volume ?? ""} of the attachment is gone`);
  if (own.csi === undefined) return unidentified(`the PersistentVolume ${own.name} has no CSI volume`);
  if (own.csi.driver !== driver)
    return unidentified(`the PersistentVolume ${own.name} belongs to ${own.csi.driver}, the attachment to ${driver}`);
  if (own.claim === undefined) return unidentified(`the PersistentVolume ${own.name} has no claim`);
  const { volumeHandle } = own.csi;
  const volumes = all.filter(
    ({ csi }) =>
      csi?.driver === driver &&
      (csi.volumeHandle === volumeHandle || attachmentName(csi.volumeHandle, driver, node) === name),
  );
  const handles = [...new Set(volumes.flatMap(({ csi }) => csi?.volumeHandle ?? []))];
  return { kind: "identified", identity: { driver, node, attachment: name, handles, volumes } };
}

/** Kubelet's handle of an inline volume. */
export function inlineHandle(podUid: string, volumeName: string): string {
  return `csi-${sha256Of(`${podUid}${volumeName}`)}`;
}

function unidentified(reason: string): Identified {
  return { kind: "unidentified", reason };
}
