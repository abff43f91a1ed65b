import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as distributions from "../../src/host/distributions.ts";

describe("all distributions", () => {
  test("sockets are probed with embedded runtimes first, each once", () => {
    expect(distributions.SOCKETS).toEqual([
      "/run/k3s/containerd/containerd.sock",
      "/run/k0s/containerd.sock",
      "/var/snap/microk8s/common/run/containerd.sock",
      "/run/containerd/containerd.sock",
      "/run/crio/crio.sock",
      "/run/cri-dockerd.sock",
      "/run/k3s/cri-dockerd/cri-dockerd.sock",
    ]);
  });

  test("credentials of a separate kubelet come before those of an embedded one", () => {
    expect(distributions.KUBELET_KUBECONFIGS).toEqual([
      "/etc/kubernetes/kubelet.conf",
      "/etc/kubernetes/kubeconfig-kubelet",
      "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
      "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
      "/var/lib/k0s/kubelet.conf",
      "/var/snap/microk8s/current/credentials/kubelet.config",
    ]);
  });

  test("the roots of containerd end with the default one", () => {
    expect(distributions.CONTAINERD_ROOTS).toEqual([
      "/var/lib/rancher/k3s/agent/containerd",
      "/var/lib/rancher/rke2/agent/containerd",
      "/var/lib/k0s/containerd",
      "/var/snap/microk8s/common/var/lib/containerd",
      "/var/lib/containerd",
    ]);
  });

  test("the temporary containerd comes from distributions that ship one", () => {
    expect(distributions.OWN_CONTAINERDS.map(({ name, binary, config }) => [name, binary, config])).toEqual([
      [
        "k3s",
        "/var/lib/rancher/k3s/data/current/bin/containerd",
        "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
      ],
      ["rke2", "/var/lib/rancher/rke2/bin/containerd", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"],
      ["k0s", "/var/lib/k0s/bin/containerd", "/etc/k0s/containerd.toml"],
      ["microk8s", "/snap/microk8s/current/bin/containerd", "/var/snap/microk8s/current/args/containerd.toml"],
    ]);
  });

  test("k3s and kubelite embed a kubelet", () => {
    expect(Object.fromEntries(distributions.EMBEDDED_KUBELETS)).toEqual({
      "k3s-server": "/run/k3s/containerd/containerd.sock",
      "k3s-agent": "/run/k3s/containerd/containerd.sock",
      k3s: "/run/k3s/containerd/containerd.sock",
      kubelite: "/var/snap/microk8s/common/run/containerd.sock",
    });
  });
});

describe("runtime behind a socket", () => {
  test("of k3s and rke2 follows from process and socket together", () => {
    expect(distributions.placesAt("/run/k3s/containerd/containerd.sock")).toEqual({
      names: ["k3s", "rke2"],
      cniConfDir: "/var/lib/rancher/k3s/agent/etc/cni/net.d",
      cniBinDirs: ["/var/lib/rancher/k3s/data/cni", "/var/lib/rancher/k3s/data/current/bin", "/opt/cni/bin"],
      kubeletRoot: "/var/lib/kubelet",
      units: ["k3s", "k3s-agent", "rke2-server", "rke2-agent"],
      logFiles: [
        "/var/lib/rancher/k3s/agent/containerd/containerd.log",
        "/var/lib/rancher/rke2/agent/containerd/containerd.log",
        "/var/lib/rancher/rke2/agent/logs/kubelet.log",
      ],
    });
  });

  test.each([
    ["/run/containerd/containerd.sock", "/var/lib/kubelet", ["containerd", "kubelet"]],
    ["/var/run/containerd/containerd.sock", "/var/lib/kubelet", ["containerd", "kubelet"]],
    ["/host/run/k0s/containerd.sock", "/var/lib/k0s/kubelet", ["k0scontroller", "k0sworker"]],
    ["/var/run/crio/crio.sock", "/var/lib/kubelet", ["crio", "kubelet"]],
    ["/run/cri-dockerd.sock", "/var/lib/kubelet", ["docker", "cri-docker", "kubelet"]],
    ["/srv/my.sock", "/var/lib/kubelet", ["containerd", "kubelet"]],
  ])("%s is identified by its path", (socket, kubeletRoot, units) => {
    expect(distributions.placesAt(socket)).toMatchObject({ kubeletRoot, units });
  });
});

/** Class files mention paths in their explanations. */
const CODE = globSync("src/**/*.ts").filter((file) => !/^src\/(host\/distributions\.ts|classes\/)/.test(file));

test("no other code contains the directories of a distribution", () => {
  const naming = CODE.filter((file) => {
    const code = readFileSync(file, "utf8").replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
    return /"[^"\n]*(?:\/rancher\/|\/lib\/k0s|\/etc\/k0s|\/snap\/microk8s|\/etc\/crio)/.test(code);
  });

  expect(naming).toEqual([]);
});
