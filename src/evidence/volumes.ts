import type { Holder, KnownPod, UnattachedVolume } from "../node/types/snapshot.ts";

/** The pods of this node that use the volume's claim. */
export function usersOf({ claim }: Pick<UnattachedVolume, "claim">, pods: readonly KnownPod[]): readonly KnownPod[] {
  if (claim === undefined) return [];
  return pods.filter(({ namespace, claims }) => namespace === claim.namespace && claims?.includes(claim.name));
}

/** No kubelet there can unmount it. */
export function isDead({ state }: Holder): boolean {
  return state?.kind === "gone" || state?.ready === false;
}
