import { describe, expect, test } from "vitest";
import type { Finding } from "../../src/evidence/finding.ts";
import { compareActions, type Rank, rankOf } from "../../src/plan/order.ts";
import { sandboxOf } from "../support/snapshot-builder.ts";

function rankOfPod(name: string, { namespace = "default", labels = {} } = {}): Rank {
  const { pod } = sandboxOf("a");
  return rankOf({ pod: { ...pod, name, namespace }, labels }, undefined);
}

describe("rank of a pod", () => {
  test.each([
    "calico-node-x",
    "canal-x",
    "cilium-x",
    "kube-flannel-ds-x",
    "flannel-x",
    "kube-multus-ds-x",
    "multus-x",
    "kube-ovn-cni-x",
    "ovs-ovn-x",
    "ovn-x",
    "antrea-agent-x",
    "weave-net-x",
    "aws-node-x",
    "kube-router-x",
    "azure-cni-x",
    "istio-cni-node-x",
    "linkerd-cni-x",
    "whereabouts-x",
  ])("%s is a network agent", (name) => {
    expect(rankOfPod(name)).toBe("cni-agent");
  });

  test.each([
    "csi-node-x",
    "ebs-csi-node-x",
    "my-csi",
    "longhorn-manager-x",
    "longhorn-csi-plugin-x",
    "csi-rbdplugin-x",
    "rbdplugin",
    "cephfsplugin-x",
    "linstor-node-x",
  ])("%s is a CSI node plugin by its name", (name) => {
    expect(rankOfPod(name)).toBe("csi-node-plugin");
  });

  test.each([
    ["my-calico-node", "an agent's name in the middle"],
    ["csix-node", "csi as a part of a word"],
    ["xcsi-node", "csi as the end of a word"],
    ["longhorn-ui", "another part of the storage"],
    ["csi-attacher-x", "a sidecar"],
    ["csi-provisioner-x", "a sidecar"],
    ["csi-resizer-x", "a sidecar"],
    ["csi-snapshotter-x", "a sidecar"],
    ["ebs-csi-controller-x", "a controller"],
    ["csi-operator-x", "an operator"],
    ["csi-external-health-monitor-x", "a monitor"],
  ])("%s is not a CSI node plugin: %s", (name) => {
    expect(rankOfPod(name)).toBe("rest");
  });

  test.each(["k8s-app", "app"])("the label %s identifies it like its name", (label) => {
    expect(rankOfPod("x", { labels: { [label]: "calico-node" } })).toBe("cni-agent");
    expect(rankOfPod("x", { labels: { [label]: "csi-node" } })).toBe("csi-node-plugin");
  });

  test("the mounts decide when the API has the pod", () => {
    const { pod } = sandboxOf("a");
    const named = { pod: { ...pod, name: "csi-node-x" }, labels: {} };
    expect(rankOf(named, { dirs: [], registers: false })).toBe("rest");
    expect(rankOf({ pod, labels: {} }, { dirs: [], registers: true })).toBe("csi-node-plugin");
  });

  test.each(["kube-system", "calico-system", "tigera-operator", "kube-flannel", "longhorn-system"])(
    "pods of %s are critical",
    (namespace) => {
      expect(rankOfPod("x", { namespace })).toBe("node-critical");
    },
  );

  test("a pod without any of these names has the lowest rank", () => {
    expect(rankOfPod("web")).toBe("rest");
  });
});

describe("order of actions", () => {
  function action(rank: Rank, attempt?: number) {
    const { pod } = sandboxOf("a");
    const subject =
      attempt === undefined
        ? ({ type: "node" } as const)
        : ({ type: "sandbox", sandboxId: sandboxOf("a").id, pod: { ...pod, attempt } } as const);
    return { rank, finding: { subject } as unknown as Finding };
  }

  test("by rank first, then by attempt", () => {
    const all = [
      action("rest", 1),
      action("rest", 0),
      action("rest"),
      action("node-critical", 2),
      action("csi-node-plugin", 3),
      action("cni-agent", 4),
    ];
    const sorted = all.toSorted(compareActions).map(({ rank, finding: { subject } }) => {
      const pod = "pod" in subject ? subject.pod : undefined;
      return `${rank} ${pod?.attempt ?? "-"}`;
    });
    expect(sorted).toEqual(["cni-agent 4", "csi-node-plugin 3", "node-critical 2", "rest 0", "rest -", "rest 1"]);
  });
});
