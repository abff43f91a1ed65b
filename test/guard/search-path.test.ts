import { describe, expect, test } from "vitest";
import { byHandOn, planSearchPath, type RunningRuntime } from "../../src/guard/install/search-path.ts";
import { editToml } from "../../src/guard/install/toml-edit.ts";
import { parseToml } from "../../src/host/toml.ts";

const OURS = "/opt/unghost/cni/bin";
const CONFIG = "/etc/containerd/config.toml";
const V3 = 'plugins."io.containerd.cri.v1.runtime"';
const V2 = 'plugins."io.containerd.grpc.v1.cri"';

function running(version: string, changes: Partial<RunningRuntime> = {}): RunningRuntime {
  return {
    name: "containerd",
    version,
    socket: "/run/containerd/containerd.sock",
    binDirs: ["/opt/cni/bin"],
    ...changes,
  };
}

function plan(runtime: RunningRuntime, files: Readonly<Record<string, string>>) {
  return planSearchPath(runtime, { read: (path) => files[path] });
}

describe("the runtime's search path", () => {
  test.each<[string, RunningRuntime, Readonly<Record<string, string>>, { path: string; mode: string; after: string }]>([
    [
      "containerd 2.1 with a directory of imports gets a drop-in",
      running("v2.1.6"),
      { [CONFIG]: 'version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n' },
      {
        path: "/etc/containerd/conf.d/zz-unghost-cni.toml",
        mode: "first",
        after: `version = 3\n[${V3}.cni]\nbin_dirs = ["${OURS}","/opt/cni/bin"]\n`,
      },
    ],
    [
      "containerd 2.1 with bin_dir gets bin_dirs in its place, because it refuses both",
      running("2.1.0", { binDirs: ["/usr/lib/cni"] }),
      {
        [CONFIG]: `version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n[${V3}.cni]\n  bin_dir = "/usr/lib/cni" # ours\n  conf_dir = "/x"\n`,
      },
      {
        path: CONFIG,
        mode: "first",
        after: `version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n[${V3}.cni]\nbin_dirs = ["${OURS}","/usr/lib/cni"]\n  conf_dir = "/x"\n`,
      },
    ],
    [
      "containerd 2.3 without a configuration gets one",
      running("v2.3.4"),
      {},
      { path: CONFIG, mode: "first", after: `version = 3\n[${V3}.cni]\nbin_dirs = ["${OURS}","/opt/cni/bin"]\n` },
    ],
    [
      "containerd 2.3 with a configuration of version 2 gets it in the section of that version",
      running("2.3.4"),
      { [CONFIG]: `version = 2\n[${V2}]\n  sandbox_image = "pause"\n` },
      {
        path: CONFIG,
        mode: "first",
        after: `version = 2\n[${V2}]\n  sandbox_image = "pause"\n[${V2}.cni]\nbin_dirs = ["${OURS}","/opt/cni/bin"]\n`,
      },
    ],
    [
      "containerd 1.7 has room for one directory",
      running("1.7.27"),
      { [CONFIG]: `version = 2\n[${V2}.cni]\n  bin_dir = "/opt/cni/bin"\n[x]\n` },
      { path: CONFIG, mode: "only", after: `version = 2\n[${V2}.cni]\n  bin_dir = "${OURS}"\n[x]\n` },
    ],
    [
      "CRI-O gets a drop-in",
      running("1.36.3", { name: "cri-o", binDirs: ["/opt/cni/bin", "/usr/libexec/cni"] }),
      {},
      {
        path: "/etc/crio/crio.conf.d/99-unghost-cni.conf",
        mode: "first",
        after: `[crio.network]\nplugin_dirs = ["${OURS}","/opt/cni/bin","/usr/libexec/cni"]\n`,
      },
    ],
    [
      "k3s gets a drop-in beside its generated configuration",
      running("v2.1.5-k3s1", {
        socket: "/run/k3s/containerd/containerd.sock",
        binDirs: ["/var/lib/rancher/k3s/data/cni"],
      }),
      {
        "/var/lib/rancher/k3s/agent/etc/containerd/config.toml":
          'version = 3\nimports = ["/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/*.toml"]\n',
      },
      {
        path: "/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/zz-unghost-cni.toml",
        mode: "first",
        after: `version = 3\n[${V3}.cni]\nbin_dirs = ["${OURS}","/var/lib/rancher/k3s/data/cni"]\n`,
      },
    ],
  ])("%s", (_, runtime, files, expected) => {
    const planned = plan(runtime, files);

    expect(planned).toMatchObject({ kind: "edit", ...expected, before: files[expected.path] });
  });

  test("a second installation changes nothing", () => {
    const first = plan(running("2.3.4"), {});
    const after = first.kind === "edit" ? first.after : "";

    expect(plan(running("2.3.4", { binDirs: [OURS, "/opt/cni/bin"] }), { [CONFIG]: after })).toMatchObject({
      kind: "done",
    });
  });

  test.each<[string, RunningRuntime, Readonly<Record<string, string>>]>([
    [
      "k3s whose generated configuration has bin_dir: with bin_dirs beside it containerd would not start",
      running("2.1.5", { socket: "/run/k3s/containerd/containerd.sock" }),
      {
        "/var/lib/rancher/k3s/agent/etc/containerd/config.toml": `version = 3\nimports = ["/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/*.toml"]\n[${V3}.cni]\nbin_dir = "/x"\n`,
      },
    ],
    ["the containerd of k0s", running("2.1.5", { socket: "/run/k0s/containerd.sock" }), {}],
    ["the containerd of MicroK8s", running("1.7.28", { socket: "/var/snap/microk8s/common/run/containerd.sock" }), {}],
    ["a containerd of its own", running("2.1.5", { socket: "/run/own/containerd.sock" }), {}],
    ["a configuration that does not parse", running("2.1.5"), { [CONFIG]: "version = \n" }],
    ["an inline table", running("1.7.0"), { [CONFIG]: `version = 2\n[${V2}]\ncni = { bin_dir = "/x" }\n` }],
  ])("leaves %s to the operator, and says what to do", (_, runtime, files) => {
    expect(plan(runtime, files)).toMatchObject({ kind: "by-hand", next: expect.stringContaining(OURS) });
  });

  test.each([
    ["/run/k0s/containerd.sock", "2.1.5", "first", /bin_dirs = .*\/etc\/k0s\/containerd\.d/],
    ["/var/snap/microk8s/common/run/containerd.sock", "1.7.28", "only", /bin_dir = .*containerd-template\.toml/],
  ])("names the place of %s", (socket, version, mode, next) => {
    expect(plan(running(version, { socket }), {})).toMatchObject({ mode, next: expect.stringMatching(next) });
  });

  test("on Talos the operator gets the fragment that its machine configuration takes", () => {
    const planned = plan(running("2.1.5"), {});
    const byHand = planned.kind === "edit" ? byHandOn("talos", planned) : planned;

    expect(byHand).toMatchObject({ kind: "by-hand", mode: "first" });
    expect(byHand.kind === "by-hand" && byHand.next).toBe(
      `Add to it, as /etc/cri/conf.d/20-customization.part:\n[${V3}.cni]\nbin_dirs = ["${OURS}","/opt/cni/bin"]\n`,
    );
  });
});

describe("editing TOML", () => {
  const table = ["a", "b.c"];

  test.each([
    [
      "a value of several lines",
      '[a."b.c"]\nkey = [\n  "x", # one\n  "y",\n]\nother = 1\n',
      '[a."b.c"]\nkey = ["z"]\nother = 1\n',
    ],
    ["a key that is the start of another", "[a.'b.c']\nkeys = 1\n", "[a.'b.c']\nkey = [\"z\"]\nkeys = 1\n"],
    ["a table that is not there, without a last newline", "x = 1", 'x = 1\n[a."b.c"]\nkey = ["z"]\n'],
  ])("%s", (_, before, after) => {
    const edited = editToml(before, { table, key: "key", value: ["z"] });

    expect(edited).toEqual({ text: after });
    expect(parseToml(after)).not.toHaveProperty("problem");
  });

  test("a removed key leaves the rest as it is", () => {
    const edited = editToml('[a."b.c"]\n# why\nkey = "x"\nother = 1\n', { table, key: "key", value: undefined });

    expect(edited).toEqual({ text: '[a."b.c"]\n# why\nother = 1\n' });
  });
});
