import { afterEach, describe, expect, test } from "vitest";
import { type Choice, detect, hostFiles } from "../../../src/boot/install/detect.ts";
import { ALPINE, HOSTS, type ScratchHost, scratchHost } from "./scratch-host.ts";

let host: ScratchHost | undefined;
afterEach(() => host?.remove());

function found(files: Readonly<Record<string, string>>, chosen?: Choice) {
  host = scratchHost(files);
  return summary(host, chosen);
}

function summary(on: ScratchHost, chosen?: Choice) {
  const detection = detect(hostFiles(on.root), chosen);
  if (detection.kind !== "found") return detection;
  const { manager, services } = detection.host;
  return { manager, services: services.map(({ distribution, service }) => `${distribution.name}: ${service}`) };
}

const PLAIN = HOSTS.containerd;
const BOTH = { ...HOSTS.containerd, ...HOSTS["cri-o"] };

describe("detect", () => {
  test.each(Object.entries(HOSTS))("recognises %s", (name, files) => {
    const { services } = found(files) as { readonly services: readonly string[] };

    expect(services).toHaveLength(1);
    expect(services[0]).toMatch(new RegExp(`^${name}: `));
  });

  test("recognises k3s under OpenRC", () => {
    expect(found(ALPINE)).toEqual({ manager: "openrc", services: ["k3s-server: k3s"] });
  });

  test("recognises k3s on NixOS, where the files are links into the store", () => {
    host = scratchHost({
      "/nix/store/abc/os-release": "ID=nixos\n",
      "/nix/store/abc/k3s.service": "[Service]\nExecStart=/nix/store/k/bin/k3s agent --x\n",
    });
    host.link("/etc/os-release", "/nix/store/abc/os-release");
    host.link("/etc/systemd/system/k3s.service", "/nix/store/abc/k3s.service");

    expect(summary(host)).toEqual({ manager: "nixos", services: ["k3s-server: k3s"] });
  });

  test("treats a NixOS host without Kubernetes as one for k3s", () => {
    expect(found({ "/etc/os-release": "ID=nixos\n" })).toMatchObject({ services: ["k3s-server: k3s"] });
  });

  test("recognises Talos by its name alone", () => {
    expect(found({ "/etc/os-release": 'NAME="Talos"\nID=talos\n' })).toEqual({ manager: "talos", services: [] });
  });

  test.each([
    ["/usr/local/bin/k3s \\\n  agent --server https://a:6443", "k3s-agent: k3s-edge"],
    ['"/usr/local/bin/k3s" "server"', "k3s-server: k3s-edge"],
  ])("recognises a renamed k3s by its command line: %j", (command, expected) => {
    const unit = { "/etc/systemd/system/k3s-edge.service": `[Service]\nExecStart=${command}\n` };
    expect(found(unit)).toMatchObject({ services: [expected] });
  });

  test("does not treat a helper of k3s as k3s", () => {
    const unit = { "/etc/systemd/system/k3s-prune.service": "[Service]\nExecStart=/usr/local/bin/k3s crictl rmi\n" };
    expect(found(unit)).toMatchObject({ kind: "none" });
  });

  test("prefers k3s to a containerd of another purpose", () => {
    expect(found({ ...PLAIN, ...HOSTS["k3s-agent"] })).toMatchObject({ services: ["k3s-agent: k3s-agent"] });
  });

  test("finds no Kubernetes in a containerd without a kubelet", () => {
    const { "/usr/lib/systemd/system/kubelet.service": _, ...docker } = PLAIN;
    expect(found(docker)).toMatchObject({ kind: "none" });
  });

  test("ignores a masked unit, even when a package installs it", () => {
    host = scratchHost({ ...PLAIN, "/usr/lib/systemd/system/k3s.service": "[Service]\nExecStart=/k3s server\n" });
    host.link("/etc/systemd/system/k3s.service", "/dev/null");

    expect(summary(host)).toMatchObject({ services: ["containerd: containerd"] });
  });

  test("returns both of two units that are not enabled", () => {
    const { "/etc/systemd/system/multi-user.target.wants/rke2-server.service": _, ...files } = HOSTS["rke2-server"];
    expect(found(files)).toMatchObject({ services: ["rke2-agent: rke2-agent", "rke2-server: rke2-server"] });
  });

  test.each([
    ["/var/lib/kubelet/kubeadm-flags.env", "--container-runtime-endpoint=unix:///run/crio/crio.sock", "cri-o: crio"],
    ["/etc/crictl.yaml", "runtime-endpoint: unix:///run/containerd/containerd.sock", "containerd: containerd"],
  ])("returns the one of two runtimes that %s names", (path, text, expected) => {
    expect(found({ ...BOTH, [path]: text })).toMatchObject({ services: [expected] });
  });

  test("does not guess between two runtimes, nor between two distributions", () => {
    expect(found(BOTH)).toEqual({ kind: "several", names: ["containerd", "cri-o"] });
    host?.remove();
    const two = { ...HOSTS["k3s-server"], ...HOSTS["k0s-worker"] };
    expect(found(two)).toEqual({ kind: "several", names: ["k0s-worker", "k3s-server"] });
  });

  test.each(["k3s", "rke2"] as const)("%s: its unit decides between server and agent", (name) => {
    for (const role of ["server", "agent"] as const) {
      const files = HOSTS[`${name}-${role}`];
      expect(found({ ...files, ...HOSTS["cri-o"] }, name)).toMatchObject({
        services: [expect.stringMatching(`^${name}-${role}: `)],
      });
      host?.remove();
    }
    expect(found({}, name)).toMatchObject({ kind: "none" });
  });

  test("accepts the distribution that the operator names, even when it is not installed yet", () => {
    expect(found(BOTH, "cri-o")).toMatchObject({ services: ["cri-o: crio"] });
    host?.remove();
    expect(found({}, "k3s-agent")).toEqual({ manager: "systemd", services: ["k3s-agent: k3s-agent"] });
    host?.remove();
    expect(found({}, "talos")).toMatchObject({ manager: "talos" });
  });
});
