import type { Kubernetes } from "../snapshot/types.ts";

/** Logs from where the pods of this node are known whenever that changes. Logs nothing on a node without a cluster. */
export function logPodSourceChanges(warn: (message: string, detail: string) => void): (kubernetes: Kubernetes) => void {
  let before = "api, complete";
  return ({ source, error }) => {
    const now = `${source}, ${error === undefined ? "complete" : "incomplete"}`;
    if (now === before) return;
    if (error !== undefined) warn(MESSAGES[source], error);
    else if (source === "api") warn("pods: API server answers again", "pods are read from the API server");
    before = now;
  };
}

const MESSAGES: Readonly<Record<Kubernetes["source"], string>> = {
  api: "pods: API server answers in part",
  kubelet: "pods: API server unavailable; reading them from kubelet",
  none: "pods: API server and kubelet unavailable",
};
