import { type ClusterPlaces, credentialsForKubelet } from "./cluster-credentials.ts";
import { podUid } from "./ids.ts";
import { findKubeletServer } from "./kubelet-server.ts";
import type { KnownPod } from "./types.ts";

export interface KubeletsWord {
  readonly pods: readonly KnownPod[];
  /** Why it could not be asked as it should have been. */
  readonly problem?: string;
}

/** The pods that the running kubelet says it works on; none where it does not run, or lets nobody in. */
export async function readKubeletPods({
  root,
  env,
  timeoutMs,
}: Pick<ClusterPlaces, "root" | "env"> & { readonly timeoutMs: number }): Promise<KubeletsWord> {
  const server = await findKubeletServer(root, AbortSignal.timeout(timeoutMs));
  if (server === undefined) return { pods: [] };
  // Loaded only when there is a kubelet to ask.
  const { askKubelet } = await import("../kube/kubelet-pods.ts");
  const credentials = credentialsForKubelet({ root, env }, server.kubeconfig);
  const { pods, ...rest } = await askKubelet({
    ...server,
    timeoutMs,
    ...(credentials === undefined ? {} : { credentials }),
  });
  return { pods: pods.map(({ uid, ...pod }) => ({ ...pod, uid: podUid(uid) })), ...rest };
}
