import { failed, read, type Source } from "../../host/source.ts";
import type { Api } from "../../kube/api.ts";
import type { ApiAttachment } from "../../kube/volume-attachments.ts";
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
import type { Waits } from "../execution/waits.ts";
import { type Identified, identify } from "./volume-identity.ts";
import { type ContainerMount, type VolumeUse, volumeUse } from "./volume-use.ts";

export interface VolumeUseTools {
  readonly hostRoot: string;
  readonly cri: Pick<CriClient, "path" | "listContainers" | "containerStatus">;
  readonly waits: Pick<Waits, "lookMs">;
}

/** How an attachment's volume is used right now; every source is read afresh. Throws KubeError where the API fails. */
export async function readVolumeUse(
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
  const signal = AbortSignal.timeout(waits.lookMs);
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

/** Of every root directory that a kubelet of this node has or may have had. */
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

/** Of all containers that have not ended: what they were given stays theirs, whatever became of it on the node. */
async function containerMounts({ cri, waits }: VolumeUseTools): Promise<Source<readonly ContainerMount[]>> {
  const call = { timeoutMs: waits.lookMs };
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
