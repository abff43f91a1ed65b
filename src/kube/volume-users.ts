import * as v from "valibot";
import type { Api } from "./api.ts";
import type { ApiAttachment } from "./cluster-facts.ts";
import { KubeError } from "./kube-error.ts";
import { listAll } from "./list.ts";
import { claimsOf, PodSchema } from "./objects.ts";
import { listAttachments } from "./volume-attachments.ts";
import { type ApiVolume, listVolumes } from "./volumes.ts";

/** A pod and the volumes in its specification. */
export interface VolumePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Missing while it is not scheduled. */
  readonly node?: string;
  readonly stage: PodStage;
  readonly claims: readonly string[];
  /** Inline CSI volumes. */
  readonly inline: readonly InlineVolume[];
}

interface InlineVolume {
  readonly name: string;
  readonly driver: string;
  readonly attributes: readonly string[];
}

/** The API's state of one volume on one node, bypassing the server's cache. */
export interface VolumeUsers {
  /** Every PersistentVolume of the cluster. */
  readonly volumes: readonly ApiVolume[];
  /** Every VolumeAttachment of the cluster. */
  readonly attachments: readonly ApiAttachment[];
  /** All pods of the node, and all pods in namespaces with a claim on the volume. */
  readonly pods: readonly VolumePod[];
  /** `status.volumesInUse` of the node: kubelet adds a volume before it mounts it and drops it once it is unmounted. */
  readonly reportedInUse: readonly string[];
}

const NodeVolumesSchema = v.object({
  status: v.nullish(v.object({ volumesInUse: v.nullish(v.array(v.string())) })),
});

/** `sameVolume` selects the PersistentVolumes that refer to the same storage. */
export async function readVolumeUsers(
  api: Api,
  node: string,
  sameVolume: (all: readonly ApiVolume[]) => readonly ApiVolume[],
): Promise<VolumeUsers> {
  const [volumes, attachments, onNode, reportedInUse] = await Promise.all([
    listVolumes(api),
    listAttachments(api),
    listPods(api, "/api/v1/pods", { fieldSelector: `spec.nodeName=${node}` }),
    readInUse(api, node),
  ]);
  const namespaces = [...new Set(sameVolume(volumes).flatMap(({ claim }) => claim?.namespace ?? []))];
  const beside = await Promise.all(
    namespaces.map((namespace) => listPods(api, `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`, {})),
  );
  const pods = new Map([...beside.flat(), ...onNode].map((pod) => [pod.uid, pod]));
  return { volumes, attachments, pods: [...pods.values()], reportedInUse };
}

async function listPods(
  api: Api,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<readonly VolumePod[]> {
  return (await listAll(api, { path, query, item: PodSchema, fresh: true })).map(toVolumePod);
}

function toVolumePod(pod: v.InferOutput<typeof PodSchema>): VolumePod {
  const { metadata, spec } = pod;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    ...(spec?.nodeName ? { node: spec.nodeName } : {}),
    stage: podStage(pod),
    claims: claimsOf(pod),
    inline: (spec?.volumes ?? []).flatMap(({ name, csi }) =>
      csi ? [{ name, driver: csi.driver, attributes: Object.values(csi.volumeAttributes ?? {}) }] : [],
    ),
  };
}

async function readInUse(api: Api, node: string): Promise<readonly string[]> {
  const path = `/api/v1/nodes/${encodeURIComponent(node)}`;
  const result = v.safeParse(NodeVolumesSchema, await api.get(path));
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no node`);
  return result.output.status?.volumesInUse ?? [];
}

/**
 * How a pod may use its volumes, by its status.
 * - `waiting`: none of its containers was ever started. Kubelet starts none before all volumes are mounted.
 * - `finished`: its phase is final and no container runs any more.
 * - `active`: everything else, including an empty status.
 */
export type PodStage = "waiting" | "active" | "finished";

export function podStage({ status }: v.InferOutput<typeof PodSchema>): PodStage {
  const statuses = [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  const isRunning = statuses.some(({ state }) => state?.running);
  const phase = status?.phase;
  if (phase === "Succeeded" || phase === "Failed") return isRunning ? "active" : "finished";
  const wasStarted = statuses.some(
    ({ state, lastState, restartCount }) => state?.terminated || lastState?.terminated || (restartCount ?? 0) > 0,
  );
  return phase === "Pending" && !isRunning && !wasStarted ? "waiting" : "active";
}
