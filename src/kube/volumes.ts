import * as v from "valibot";
import type { Api } from "./api.ts";
import { KubeError } from "./kube-error.ts";
import { listAll } from "./list.ts";

const VolumeSchema = v.object({
  metadata: v.nullish(v.object({ name: v.nullish(v.string()) })),
  spec: v.object({
    accessModes: v.nullish(v.array(v.string())),
    claimRef: v.nullish(v.object({ namespace: v.nullish(v.string()), name: v.nullish(v.string()) })),
    csi: v.nullish(v.object({ driver: v.string(), volumeHandle: v.string() })),
  }),
});

export interface ClaimName {
  readonly namespace: string;
  readonly name: string;
}

/** The claim and the driver's handle of a PersistentVolume. */
export interface ApiVolume {
  readonly name: string;
  readonly claim?: ClaimName;
  readonly csi?: { readonly driver: string; readonly volumeHandle: string };
  /** The driver can attach it to several nodes at once. */
  readonly shared: boolean;
}

const PATH = "/api/v1/persistentvolumes";

export async function getVolume(api: Api, name: string): Promise<ApiVolume> {
  const path = `${PATH}/${encodeURIComponent(name)}`;
  const result = v.safeParse(VolumeSchema, await api.get(path));
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no PersistentVolume`);
  return toVolume(result.output, name);
}

/** All PersistentVolumes of the cluster, bypassing the server's cache. */
export async function listVolumes(api: Api): Promise<readonly ApiVolume[]> {
  const volumes = await listAll(api, { path: PATH, item: VolumeSchema, fresh: true });
  return volumes.map((volume) => toVolume(volume, volume.metadata?.name ?? ""));
}

const SHARED_MODES: ReadonlySet<string> = new Set(["ReadWriteMany", "ReadOnlyMany"]);

function toVolume({ spec }: v.InferOutput<typeof VolumeSchema>, name: string): ApiVolume {
  const { claimRef, csi, accessModes } = spec;
  return {
    name,
    ...(claimRef?.namespace && claimRef.name ? { claim: { namespace: claimRef.namespace, name: claimRef.name } } : {}),
    ...(csi ? { csi } : {}),
    shared: accessModes?.some((mode) => SHARED_MODES.has(mode)) === true,
  };
}
