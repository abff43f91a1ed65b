import * as v from "valibot";
import type { Api } from "./api.ts";
import { KubeError } from "./kube-error.ts";

const VolumeSchema = v.object({
  spec: v.object({
    claimRef: v.nullish(v.object({ namespace: v.nullish(v.string()), name: v.nullish(v.string()) })),
  }),
});

export interface ClaimName {
  readonly namespace: string;
  readonly name: string;
}

/** The claim of a PersistentVolume. */
export interface ApiVolume {
  readonly claim?: ClaimName;
}

const PATH = "/api/v1/persistentvolumes";

export async function getVolume(api: Api, name: string): Promise<ApiVolume> {
  const path = `${PATH}/${encodeURIComponent(name)}`;
  const result = v.safeParse(VolumeSchema, await api.get(path));
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no PersistentVolume`);
  return toVolume(result.output);
}

function toVolume({ spec }: v.InferOutput<typeof VolumeSchema>): ApiVolume {
  const { claimRef } = spec;
  return claimRef?.namespace && claimRef.name ? { claim: { namespace: claimRef.namespace, name: claimRef.name } } : {};
}
