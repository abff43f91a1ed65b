import { failed, read, type Source } from "../../host/source.ts";
import type { Api } from "../../kube/api.ts";
import { attacherLease } from "../../kube/attacher-lease.ts";
import type { ApiAttachment } from "../../kube/cluster-facts.ts";
import { attacherFinalizer } from "../../kube/volume-attachments.ts";
import { readVolumeUsers } from "../../kube/volume-users.ts";
import type { ApiVolume } from "../../kube/volumes.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { ContainerState } from "../../runtime/gen/runtime/v1/cri.ts";
import { mapLimited } from "../../runtime/map-limited.ts";
import { readKubeletRoots } from "../../snapshot/kubelet-root.ts";
import { type KubeletVolume, readKubeletVolumes } from "../../snapshot/kubelet-volumes.ts";
import { readMountTables } from "../../snapshot/mount-tables.ts";
import { readProcessTable } from "../../snapshot/process-table.ts";
import { readVolumeDevices } from "../../snapshot/volume-devices.ts";
import type { Interruption, Sleep, Waits } from "../execution/waits.ts";
import {
  type ContainerMount,
  type Identified,
  type InUseCode,
  identify,
  type UnreadCode,
  type VolumeUse,
  volumeUse,
} from "./volume-use.ts";

export interface PollTools {
  readonly sleep: Sleep;
  readonly interruption: Pick<Interruption, "stop">;
}

const POLL_MS = 1000;
/** Attachers renew every 5 s; a lease that was not renewed for twice its duration has no holder. */
const LEASE_LENGTHS = 2;

export type ObjectionCode =
  | InUseCode
  | UnreadCode
  | "attacher-without-lease"
  | "attacher-silent"
  | "attachment-changed"
  | "attached-by-now"
  | "already-deleting"
  | "foreign-finalizer"
  | "volume-unidentified";

/** Whether an attachment may be deleted, and which pods wait for the new one. */
type DeletionProof =
  | { readonly kind: "proven"; readonly awaitedBy: readonly string[] }
  | ({ readonly kind: "refused" } & Objection);

/** Why an attachment must stay. */
interface Objection {
  readonly code: ObjectionCode;
  readonly reason: string;
}

/**
 * Why the attacher is not working; undefined if it was observed to renew its lease. Two different readings prove that
 * without trusting any clock.
 */
export async function attacherAnswers(api: Api, attacher: string, tools: PollTools): Promise<Objection | undefined> {
  const first = await attacherLease(api, attacher, { fresh: true });
  if (first === undefined)
    return {
      code: "attacher-without-lease",
      reason: `whether the attacher ${attacher} works is unknown: it holds no lease external-attacher-leader-…`,
    };
  const deadline = performance.now() + first.durationSeconds * LEASE_LENGTHS * 1000;
  while (performance.now() < deadline && !tools.interruption.stop.aborted) {
    await tools.sleep(POLL_MS);
    const now = await attacherLease(api, attacher, { fresh: true });
    if (now !== undefined && now.renewedAt.getTime() !== first.renewedAt.getTime()) return undefined;
  }
  return {
    code: "attacher-silent",
    reason: `the attacher ${attacher} does not answer: its lease ${first.name} is not renewed (last ${first.renewedAt.toISOString()} by ${first.holder})`,
  };
}

interface Meant {
  readonly node: string;
  readonly volume: string;
}

/** Proves that the attachment's volume is not in use. */
export async function proveDeletable(
  api: Api,
  attachment: ApiAttachment,
  meant: Meant,
  tools: VolumeUseTools,
): Promise<DeletionProof> {
  const objection = objectionToObject(attachment, meant);
  if (objection !== undefined) return { kind: "refused", ...objection };
  const use = await readVolumeUse(api, attachment, tools);
  switch (use.kind) {
    case "unused":
      return { kind: "proven", awaitedBy: use.awaitedBy };
    case "unidentified":
      return {
        kind: "refused",
        code: "volume-unidentified",
        reason: `whether the volume is in use is unknown: ${use.reason}`,
      };
    case "in-use":
    case "unknown":
      return { kind: "refused", code: use.code, reason: use.reason };
  }
}

function objectionToObject(attachment: ApiAttachment, { node, volume }: Meant): Objection | undefined {
  if (attachment.node !== node || attachment.volume !== volume)
    return { code: "attachment-changed", reason: "it is about another node or volume by now" };
  if (attachment.attached) return { code: "attached-by-now", reason: "the volume is attached by now" };
  const finalizers = attachment.finalizers.join(", ");
  if (attachment.deleting)
    return {
      code: "already-deleting",
      reason: `its deletion was asked for before, and waits for ${finalizers || "the API server"}`,
    };
  const foreign = attachment.finalizers.find((one) => one !== attacherFinalizer(attachment.attacher));
  if (foreign === undefined) return undefined;
  return { code: "foreign-finalizer", reason: `${foreign} holds it, which is not its attacher's finalizer` };
}

export interface VolumeUseTools {
  readonly hostRoot: string;
  readonly cri: Pick<CriClient, "path" | "listContainers" | "containerStatus">;
  readonly waits: Pick<Waits, "queryMs">;
}

/** How an attachment's volume is used now; every source is read again. Throws KubeError if the API fails. */
async function readVolumeUse(
  api: Api,
  attachment: ApiAttachment,
  tools: VolumeUseTools,
): Promise<VolumeUse | Extract<Identified, { kind: "unidentified" }>> {
  const same = (all: readonly ApiVolume[]): readonly ApiVolume[] => {
    const found = identify(attachment, all);
    return found.kind === "identified" ? found.identity.volumes : [];
  };
  const users = await readVolumeUsers(api, attachment.node, same);
  const identified = identify(attachment, users.volumes);
  if (identified.kind === "unidentified") return identified;
  const { identity } = identified;
  const { hostRoot: root, waits } = tools;
  const signal = AbortSignal.timeout(waits.queryMs);
  const table = await readProcessTable({ root, signal });
  const names = [...identity.handles, ...identity.volumes.map(({ name }) => name)];
  const [kubelet, mounts, containers, devices] = await Promise.all([
    kubeletVolumes(tools, signal),
    readMountTables({ root, table, signal }),
    containerMounts(tools),
    readVolumeDevices({ root, table, names, signal }),
  ]);
  return volumeUse(identity, { users, kubelet, mounts, containers, devices });
}

/** For every root directory of a current or former kubelet of this node. */
async function kubeletVolumes(tools: VolumeUseTools, signal: AbortSignal): Promise<Source<readonly KubeletVolume[]>> {
  const { hostRoot: root } = tools;
  const found: KubeletVolume[] = [];
  const roots = await readKubeletRoots({ root, runtimePath: tools.cri.path, signal });
  if (roots.length === 0) return failed("there is no directory of a kubelet here");
  for (const kubeletRoot of roots) {
    const records = readKubeletVolumes(root, kubeletRoot);
    if (records.status !== "read") return records;
    found.push(...records.value);
  }
  return read(found);
}

const AT_ONCE = 16;

/** Of all containers that have not ended: they keep their mounts, whatever happened to them on the node. */
async function containerMounts({ cri, waits }: VolumeUseTools): Promise<Source<readonly ContainerMount[]>> {
  const call = { timeoutMs: waits.queryMs };
  try {
    const containers = await cri.listContainers(undefined, call);
    const alive = containers.filter(({ state }) => state !== ContainerState.CONTAINER_EXITED);
    const mounts = await mapLimited(alive, AT_ONCE, async ({ id, labels }) => {
      const { status } = await unlessGone(() => cri.containerStatus(id, call));
      const pod = `${labels["io.kubernetes.pod.namespace"] ?? ""}/${labels["io.kubernetes.pod.name"] ?? ""}`;
      const container = status?.metadata?.name ?? id;
      return (status?.mounts ?? []).map(({ hostPath }) => ({ container, pod, hostPath }));
    });
    return read(mounts.flat());
  } catch (error) {
    if (error instanceof RuntimeError) return failed(error.message, error.next);
    throw error;
  }
}

async function unlessGone<T>(ask: () => Promise<T>): Promise<T | { readonly status: undefined }> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === "not-found") return { status: undefined };
    throw error;
  }
}
