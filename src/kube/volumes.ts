import * as v from "valibot";
import type { Api } from "./api.ts";
import { KubeError } from "./kube-error.ts";
import { listAll } from "./list.ts";
import { claimsOf, PodSchema } from "./objects.ts";

const VolumeSchema = v.object({
  spec: v.object({
    claimRef: v.nullish(v.object({ namespace: v.nullish(v.string()), name: v.nullish(v.string()) })),
    csi: v.nullish(v.object({ driver: v.string(), volumeHandle: v.string() })),
  }),
});

/** What a PersistentVolume says about who claims it and what its driver calls it. */
export interface ApiVolume {
  readonly claim?: { readonly namespace: string; readonly name: string };
  readonly csi?: { readonly driver: string; readonly volumeHandle: string };
}

export async function getVolume(api: Api, name: string): Promise<ApiVolume> {
  const path = `/api/v1/persistentvolumes/${encodeURIComponent(name)}`;
  const result = v.safeParse(VolumeSchema, await api.get(path));
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no PersistentVolume`);
  const { claimRef, csi } = result.output.spec;
  return {
    ...(claimRef?.namespace && claimRef.name ? { claim: { namespace: claimRef.namespace, name: claimRef.name } } : {}),
    ...(csi ? { csi } : {}),
  };
}

export interface ClaimUser {
  readonly name: string;
  /** Missing while it is not scheduled. */
  readonly node?: string;
}

/** Pods anywhere in the cluster that use a claim and have not finished; past the server's cache. */
export async function usersOfClaim(
  api: Api,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<readonly ClaimUser[]> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  const pods = await listAll(api, { path, item: PodSchema, fresh: true });
  return pods
    .filter((pod) => claimsOf(pod).includes(name))
    .filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed")
    .map(({ metadata, spec }) => ({ name: metadata.name, ...(spec?.nodeName ? { node: spec.nodeName } : {}) }));
}
