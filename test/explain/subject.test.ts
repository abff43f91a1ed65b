import { describe, expect, test } from "vitest";
import { subjectOf } from "../../src/logs/subject.ts";
import { normalise } from "../../src/logs/text.ts";

const ID = "7c1f0e5ab2d94836f1a0c7be52d86e4913fa07cd2b6e8150947bd3f6ac8e210d";
const UID = "3f8e6c1a-0b7d-4e52-9c3f-71d2a8b4e605";
const full = { namespace: "shop", name: "web-0", uid: UID, attempt: 1 };
const named = { namespace: "shop", name: "web-0" };

describe("the subject of a line", () => {
  test.each([
    [
      "a name lock",
      `failed to reserve sandbox name \\"web-0_shop_${UID}_1\\": name \\"web-0_shop_${UID}_1\\" is reserved for \\"${ID}\\"`,
      { sandboxId: ID, pod: full },
    ],
    [
      "containerd's metadata",
      `RunPodSandbox for &PodSandboxMetadata{Name:web-0,Uid:${UID},Namespace:shop,Attempt:1,} failed`,
      { pod: full },
    ],
    ["CRI-O's name", `pod sandbox k8s_web-0_shop_${UID}_1(${ID}): error removing`, { sandboxId: ID, pod: full }],
    ["docker's name", `The container name "/k8s_POD_web-0_shop_${UID}_1" is already in use`, { pod: full }],
    [
      "a container's name",
      `failed to reserve container name "app_web-0_shop_${UID}_3": name`,
      { pod: { namespace: "shop", name: "web-0", uid: UID } },
    ],
    [
      "klog's fields",
      `"StopPodSandbox from runtime service failed" err="x" podSandboxID="${ID}" pod="shop/web-0"`,
      { sandboxId: ID, pod: named },
    ],
    ["a JSON id", `"Failed to stop sandbox" podSandboxID={"Type":"containerd","ID":"${ID}"}`, { sandboxId: ID }],
    ["a destroyed network", `failed to destroy network for sandbox "${ID}": boom`, { sandboxId: ID }],
    ["crictl's short id", 'removing the pod sandbox "7c1f0e5ab2d94": rpc error', { sandboxId: "7c1f0e5ab2d94" }],
    ["dockershim", `Error deleting shop_web-0/${ID} from network cbr0/cbr0: x`, { sandboxId: ID, pod: named }],
    ["dockershim's teardown", 'failed to teardown pod "web-0_shop" network: x', { pod: named }],
    ["kubelet's pod", `CreatePodSandbox for pod "web-0_shop(${UID})" failed`, { pod: { ...named, uid: UID } }],
    [
      "CNI arguments",
      `ContainerID:"${ID}" Args:"IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=${UID}"`,
      { sandboxId: ID, pod: named },
    ],
    ["multus", `Multus: [shop/web-0/${UID}]: error getting pod`, { pod: { ...named, uid: UID } }],
    ["a result file", `/var/lib/cni/results/cbr0-${ID}-eth0`, { sandboxId: ID }],
    ["a truncated line", 'failed to reserve sandbox name "xxx": name "xxx" is reserved for "abc…"', {}],
    ["nothing", "the weather is fine", {}],
  ])("%s", (_, line, expected) => {
    expect(subjectOf(normalise(line))).toEqual(expected);
  });
});
