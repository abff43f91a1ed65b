import { expect, test } from "vitest";
import { read } from "../../src/host/source.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import {
  ago,
  containerOf,
  FINISHED,
  LOST,
  type NodeParts,
  PATIENT,
  pluginFor,
  sandboxOf,
} from "../support/snapshot-builder.ts";

const PATH = "/etc/kubernetes/manifests/etcd.yaml";
const A21 = `static-pod-not-started/${PATH}`;
const MANIFEST = { path: PATH, name: "pod", namespace: "default", modifiedAt: ago(1800) };
const STATIC = { annotations: { "kubernetes.io/config.source": "file" }, uid: "node" } as const;
const long = { kubeletStarted: 10 } as const;
const LONG_AGO = { ...LOST, finishedAt: BigInt(ago(1700).getTime()) * 1_000_000n };

test.each<readonly [string, NodeParts, Partial<typeof MANIFEST>, boolean]>([
  ["no sandbox of it exists", long, {}, true],
  ["its sandbox is Ready", { ...long, sandboxes: [sandboxOf("a", { ...STATIC, state: "ready" })] }, {}, false],
  [
    "its sandbox died long ago",
    {
      ...long,
      sandboxes: [sandboxOf("a", { ...STATIC, createdSecondsAgo: 1800 })],
      containers: [containerOf("a", { exit: LONG_AGO })],
    },
    {},
    true,
  ],
  [
    "its sandbox died just now",
    { ...long, sandboxes: [sandboxOf("a", { ...STATIC, createdSecondsAgo: 30 })] },
    {},
    false,
  ],
  [
    "it has finished in order",
    {
      ...long,
      sandboxes: [sandboxOf("a", { ...STATIC, createdSecondsAgo: 1800 })],
      containers: [containerOf("a", { exit: FINISHED })],
    },
    {},
    false,
  ],
  [
    "only a pod of the API has that name",
    { ...long, sandboxes: [sandboxOf("a", { uid: "node", state: "ready" })] },
    {},
    true,
  ],
  ["kubelet has just started", { kubeletStarted: 3500 }, {}, false],
  ["no kubelet runs", {}, {}, false],
  ["the manifest was written just now", long, { modifiedAt: ago(30) }, false],
  ["a creation is under way", { ...long, plugins: [pluginFor("b", "ADD", 30)], runtimeVersion: "1.6.8" }, {}, false],
])("a static pod, and %s", (_, parts, manifest, isFound) => {
  const found = named(diagnosed(parts, PATIENT, { staticManifests: read([{ ...MANIFEST, ...manifest }]) }));

  expect(found.filter((id) => id === A21)).toEqual(isFound ? [A21] : []);
});
