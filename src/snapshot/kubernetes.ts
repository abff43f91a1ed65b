import { DEFAULT_POD_LOGS, readKubeletDirs } from "./kubelet-dirs.ts";
import type { Kubernetes } from "./types.ts";

export interface KubernetesPlaces {
  readonly root: string;
  readonly noKube: boolean;
  readonly kubeletRoot: string;
}

/** Which pods Kubernetes wants here, from whoever can be asked. Kubelet's own directories need no API server. */
export function readKubernetes({ root, noKube, kubeletRoot }: KubernetesPlaces): Kubernetes {
  if (noKube) return { source: "none" };
  const dirs = readKubeletDirs({ root, kubeletRoots: [kubeletRoot], podLogs: DEFAULT_POD_LOGS });
  switch (dirs.status) {
    case "read":
      return { source: "kubelet", pods: dirs.value };
    case "absent":
      return { source: "none", error: dirs.reason };
    case "failed":
      return { source: "none", error: dirs.error.message };
  }
}
