import { type ClusterPlaces, credentialsForKubelet } from "./cluster-credentials.ts";
import { podUid } from "./ids.ts";
import { findKubeletServer } from "./kubelet-server.ts";
import type { KnownPod } from "./types.ts";

/** The pods that the running kubelet says it works on; none where it does not run, or lets nobody in. */
export async function readKubeletPods({
  root,
  env,
  timeoutMs,
}: Pick<ClusterPlaces, "root" | "env"> & { readonly timeoutMs: number }): Promise<readonly KnownPod[]> {
  const server = await findKubeletServer(root, AbortSignal.timeout(timeoutMs));
  if (server === undefined) return [];
  // Loaded only when there is a kubelet to ask.
  const { askKubelet } = await import("../kube/kubelet-pods.ts");
  const credentials = credentialsForKubelet({ root, env }, server.kubeconfig);
  const pods = await askKubelet({
    urls: server.urls,
    timeoutMs,
    ...(credentials === undefined ? {} : { credentials }),
  });
  return pods.map(({ uid, ...pod }) => ({ ...pod, uid: podUid(uid) }));
}
