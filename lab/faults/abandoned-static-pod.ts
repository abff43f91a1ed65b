import { utimesSync } from "node:fs";
import type { LabNode } from "../node.ts";
import type { Injected } from "./injected.ts";

export const MANIFESTS = "/etc/kubernetes/manifests";

/** A manifest that has been in kubelet's directory for an hour, of a pod that no kubelet has started. */
export async function abandonedStaticPod(node: LabNode, name = "etcd"): Promise<Injected & { readonly path: string }> {
  const path = `${MANIFESTS}/${name}.yaml`;
  const manifest = `apiVersion: v1
kind: Pod
metadata:
  labels:
    name: other
  name: ${name}
  namespace: kube-system
spec:
  containers: [{ name: main, image: unghost.lab/pause:1 }]
`;
  await node.writeFile(path, manifest);
  const anHourAgo = Date.now() / 1000 - 3600;
  utimesSync(node.path(path), anHourAgo, anHourAgo);
  return { fault: "abandoned-static-pod", did: `left the manifest ${path} of a pod that does not run`, path };
}
