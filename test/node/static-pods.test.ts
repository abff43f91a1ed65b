import { expect, test } from "vitest";
import { podIn } from "../../src/node/static-pods.ts";

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
