import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { manifestDir, podIn } from "../../src/node/static-pods.ts";
import { tempDir } from "../support/temp-dir.ts";

const YAML = `apiVersion: v1
kind: Pod
metadata:
  annotations:
    name: wrong
    kubeadm.kubernetes.io/etcd.advertise-client-urls: https://10.0.0.1:2379
  creationTimestamp: null
  labels:
    component: etcd
    name: wrong
  name: etcd
  namespace: kube-system
spec:
  containers:
  - name: etcd
`;

test.each<readonly [string, string, ReturnType<typeof podIn>]>([
  ["as kubeadm writes it", YAML, { name: "etcd", namespace: "kube-system" }],
  ["without a namespace", 'kind: Pod\nmetadata:\n  name: "web"\n', { name: "web", namespace: "default" }],
  ["as JSON", '{"kind":"Pod","metadata":{"name":"web","namespace":"shop"}}', { name: "web", namespace: "shop" }],
  ["of another kind", YAML.replace("Pod", "ConfigMap"), undefined],
  ["without a name", "kind: Pod\nmetadata:\n  labels: {}\n", undefined],
  ["with a name that no pod can have", "kind: Pod\nmetadata:\n  name: ../x\n", undefined],
  ["empty", "", undefined],
])("a manifest %s", (_, manifest, expected) => {
  expect(podIn(manifest)).toEqual(expected);
});

describe("the directory of static pods", () => {
  let root: ReturnType<typeof tempDir>;
  beforeEach(() => {
    root = tempDir();
  });
  afterEach(() => root.remove());

  const KUBEADM = "/var/lib/kubelet/config.yaml";
  const DROP_INS = "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d";

  test.each<readonly [string, readonly string[], string | undefined]>([
    ["by its flag", ["/usr/bin/kubelet", "--pod-manifest-path=/etc/manifests"], "/etc/manifests"],
    ["in kubeadm's file", ["/usr/bin/kubelet", "--config", KUBEADM], "/etc/kubernetes/manifests"],
    [
      "of rke2, by the last drop-in",
      ["kubelet", `--config-dir=${DROP_INS}`],
      "/var/lib/rancher/rke2/agent/pod-manifests",
    ],
    [
      "of rke2 before its drop-ins, over kubeadm's",
      ["kubelet", "--config", KUBEADM, `--config-dir=${DROP_INS}`],
      "/var/lib/rancher/rke2/agent/pod-manifests",
    ],
    ["of a k3s server", ["/usr/local/bin/k3s", "server"], "/var/lib/rancher/k3s/agent/pod-manifests"],
    [
      "of a k3s agent with its data elsewhere",
      ["/usr/local/bin/k3s", "agent", "--data-dir", "/data/k3s"],
      "/data/k3s/agent/pod-manifests",
    ],
    ["that is not absolute", ["/usr/bin/kubelet", "--pod-manifest-path=manifests"], undefined],
    ["of a kubelet without one", ["/usr/bin/kubelet"], undefined],
  ])("%s", (_, argv, expected) => {
    root.write(KUBEADM, "kind: KubeletConfiguration\nstaticPodPath: /etc/kubernetes/manifests\n");
    root.write(`${DROP_INS}/00-defaults.conf`, "kind: KubeletConfiguration\nstaticPodPath: /elsewhere\n");
    root.write(`${DROP_INS}/10-rke2.conf`, 'staticPodPath: "/var/lib/rancher/rke2/agent/pod-manifests"\n');
    root.write(`${DROP_INS}/99-notes.txt`, "staticPodPath: /wrong\n");

    expect(manifestDir(argv, root.path)).toBe(expected);
  });
});
