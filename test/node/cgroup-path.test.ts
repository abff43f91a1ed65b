import { describe, expect, test } from "vitest";
import {
  containerIdsOf,
  groupsBelow,
  isInContainer,
  isOtherEngines,
  isSystemService,
  parseCgroup,
} from "../../src/node/cgroup-path.ts";
import { ID, OTHER_ID } from "./temp-dir.ts";

const groupsIn = (text: string) => groupsBelow(parseCgroup(text), new Map());
const idsIn = (text: string) => containerIdsOf(groupsIn(text));

describe("container id of a cgroup", () => {
  test.each([
    ["systemd driver", `0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-${ID}.scope`, [ID]],
    ["cgroupfs driver", `0::/kubepods/besteffort/pod1/${ID}\n`, [ID]],
    ["CRI-O", `0::/kubepods.slice/crio-${ID}.scope/container`, [ID]],
    [
      "cgroup v1, with one line per controller",
      `3:cpu:/kubepods/${ID}\n2:memory:/kubepods/${ID}\n1:name=systemd:/`,
      [ID],
    ],
    ["colons of a mixed driver", `0::/system.slice/kubepods-pod1:cri-containerd:${ID}`, [ID]],
    ["a node inside a container", `0::/docker/${OTHER_ID}/kubelet/kubepods/pod1/${ID}`, [OTHER_ID]],
    ["a group that a container created in its own", `0::/kubepods/pod1/${OTHER_ID}/x/${ID}`, [OTHER_ID]],
    ["a group that a user named", `0::/user.slice/user-1000.slice/user@1000.service/${ID}.scope`, []],
    ["none", "0::/system.slice/containerd.service", []],
    ["longer hex is not an id", `0::/x-${ID}0`, []],
    ["upper case is not an id", `0::/x-${ID.toUpperCase()}`, []],
  ])("%s", (_what, text, ids) => {
    expect(idsIn(text)).toEqual(ids);
  });

  test("the node's own container is not counted, seen from inside (kind) or from a pod with a cgroup namespace", () => {
    const kind = parseCgroup(`0::/docker/${OTHER_ID}/init.scope`);
    const kubelet = groupsBelow(parseCgroup(`0::/docker/${OTHER_ID}/kubelet.slice/kubelet.service`), kind);
    const pod = groupsBelow(parseCgroup(`0::/docker/${OTHER_ID}/kubelet.slice/pod1/cri-containerd-${ID}.scope`), kind);
    const namespaced = groupsBelow(
      parseCgroup("0::/../../../system.slice/kubelet.service"),
      parseCgroup("0::/../../../init.scope"),
    );

    expect([isInContainer(kubelet), isSystemService(kubelet)]).toEqual([false, true]);
    expect(containerIdsOf(pod)).toEqual([ID]);
    expect([isInContainer(namespaced), isSystemService(namespaced)]).toEqual([false, true]);
  });
});

test.each([
  ["docker with systemd", `0::/system.slice/docker-${ID}.scope`, true],
  ["docker with cgroupfs", `0::/docker/${ID}`, true],
  ["podman", `0::/machine.slice/libpod-${ID}.scope/container`, true],
  ["nerdctl", `0::/system.slice/nerdctl-${ID}.scope`, true],
  ["a pod of cri-dockerd", `0::/kubepods.slice/kubepods-pod1.slice/docker-${ID}.scope`, false],
  ["a pod of containerd", `0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-${ID}.scope`, false],
  ["docker itself", "0::/system.slice/docker.service", false],
])("detects a container of another engine: %s", (_what, text, expected) => {
  expect(isOtherEngines(groupsIn(text))).toBe(expected);
});

test.each([
  ["0::/system.slice/kubelet.service", true],
  ["0::/kubelet.slice/kubelet.service", true],
  ["0::/podruntime/kubelet", true],
  ["12:cpu:/\n1:name=systemd:/system.slice/k3s.service", true],
  ["12:cpu:/system.slice/kubelet.service\n1:name=systemd:/user.slice/kubelet.service", false],
  ["0::/system.slice/kubelet.service/sub", false],
  ["0::/podruntime/kubelet/x", false],
  ["0::/user.slice/user-1000.slice/user@1000.service/app.slice/kubelet.service", false],
  [`0::/system.slice/docker-${ID}.scope/system.slice/kubelet.service`, false],
  ["0::/", false],
])("%j is the cgroup of a system service: %s", (text, expected) => {
  expect(isSystemService(groupsIn(text))).toBe(expected);
});

test("hierarchies with the same path are one group, unless init's paths differ", () => {
  const both = parseCgroup(`2:cpu:/docker/${OTHER_ID}\n1:name=systemd:/docker/${OTHER_ID}\nnonsense\n`);

  expect(groupsBelow(both, new Map())).toEqual([
    { hierarchies: ["cpu", "name=systemd"], segments: ["docker", OTHER_ID] },
  ]);
  expect(groupsBelow(both, parseCgroup(`2:cpu:/docker/${OTHER_ID}\n1:name=systemd:/`))).toEqual([
    { hierarchies: ["cpu"], segments: [] },
    { hierarchies: ["name=systemd"], segments: ["docker", OTHER_ID] },
  ]);
});
