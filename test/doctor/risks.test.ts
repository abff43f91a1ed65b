import { mkdirSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { cniPodRisks, riskOf } from "../../src/doctor/cni-pods.ts";
import { renderDoctor } from "../../src/doctor/doctor-report.ts";
import { shimRisk } from "../../src/doctor/multus-shim.ts";
import { binDirRisk, clockRisk, inotifyRisk, staleConfRisk, versionRisk } from "../../src/doctor/risks.ts";
import { runtimeRisk } from "../../src/doctor/runtime-support.ts";
import type { Api } from "../../src/kube/api.ts";
import { readCniConfFiles } from "../../src/node/cni-conf-files.ts";
import { configuredBinDirs } from "../../src/node/containerd-config.ts";
import type { CniConfig } from "../../src/node/types/cni.ts";
import { THICK_MULTUS } from "../support/snapshot-builder.ts";
import { tempDir } from "../support/temp-dir.ts";

let root: ReturnType<typeof tempDir>;
beforeEach(() => {
  root = tempDir();
});
afterEach(() => root.remove());

test.each<readonly [string, string, boolean]>([
  ["containerd", "1.7.27", true],
  ["containerd", "v2.2.9-k3s1", true],
  ["containerd", "2.3.4", false],
  ["containerd", "2.5.0", false],
  ["containerd", "unknown", false],
  ["cri-o", "1.33.9", true],
  ["cri-o", "1.36.1", false],
  ["docker", "1.0.0", false],
])("%s %s is out of support: %s", (name, version, isOut) => {
  expect(runtimeRisk({ name, version })).toHaveLength(isOut ? 1 : 0);
});

describe("bin_dir of containerd", () => {
  const V2 = (cni: string) => `version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\n${cni}\n`;
  const V3 = (cni: string) => `version = 3\n[plugins."io.containerd.cri.v1.runtime".cni]\n${cni}\n`;

  test.each<readonly [string, string, string, RegExp | undefined]>([
    ["1.7.27", "elsewhere", V2('bin_dir = "/usr/lib/cni"'), /With the upgrade to 2\.1/],
    ["2.3.4", "elsewhere", V3('bin_dir = "/usr/lib/cni"'), /^Now/],
    ["2.4.2", "elsewhere, which is not read", V3('bin_dir = "/usr/lib/cni"'), /^Now/],
    ["2.3.4", "at the default", V3('bin_dir = "/opt/cni/bin"'), undefined],
    ["2.3.4", "beside the list", V3('bin_dir = "/usr/lib/cni"\nbin_dirs = ["/usr/lib/cni"]'), undefined],
    ["2.3.4", "absent", V3('conf_dir = "/etc/cni/net.d"'), undefined],
  ])("%s: %s", async (version, _, config, end) => {
    root.write("/etc/containerd/config.toml", config);

    const [risk] = binDirRisk({ name: "containerd", version }, await configuredBinDirs(root.path, undefined));

    if (end === undefined) expect(risk).toBeUndefined();
    else expect(risk?.end).toMatch(end);
    if (risk !== undefined) expect(risk.end).toContain('bin_dirs = ["/usr/lib/cni"]');
  });

  test("in a file that the configuration imports, by the path of the running process", async () => {
    root.write("/proc/7/cmdline", ["containerd", "--config", "/srv/c.toml"].join("\0"));
    root.write("/srv/c.toml", 'version = 3\nimports = ["conf.d/*.toml"]\n');
    root.write("/srv/conf.d/10-cni.toml", V3('bin_dir = "/usr/lib/cni"'));
    root.write("/srv/conf.d/readme.txt", V3('bin_dir = "/usr/lib/cni"'));

    expect(await configuredBinDirs(root.path, 7)).toMatchObject([
      { file: "/srv/conf.d/10-cni.toml", single: "/usr/lib/cni" },
    ]);
  });
});

describe("files of the CNI directory", () => {
  const DIR = "/etc/cni/net.d";
  const files = () => readCniConfFiles(root.path, DIR, ["/opt/cni/bin"]);
  const bridge = { cniVersion: "1.0.0", name: "cbr0", plugins: [{ type: "bridge" }] };
  beforeEach(() => root.write("/opt/cni/bin/bridge", "", 0o755));

  test.each<readonly [string, object, RegExp | undefined]>([
    [
      "its plugin is not installed",
      { cniVersion: "1.0.0", name: "x", type: "multus" },
      /plugin multus is not installed/,
    ],
    [
      "its kubeconfig does not exist",
      { cniVersion: "1.0.0", name: "x", type: "bridge", kubeconfig: "/etc/cni/net.d/multus.d/multus.kubeconfig" },
      /multus\.kubeconfig, does not exist/,
    ],
    ["it works", { cniVersion: "1.0.0", name: "x", type: "bridge" }, undefined],
  ])("the first one: %s", (_, first, why) => {
    root.write(`${DIR}/00-first.conf`, JSON.stringify(first));
    root.write(`${DIR}/10-bridge.conflist`, JSON.stringify(bridge));

    const [risk] = staleConfRisk(files());

    if (why === undefined) expect(risk).toBeUndefined();
    else
      expect(risk).toMatchObject({ detail: expect.stringMatching(why), end: expect.stringContaining("mv /etc/cni") });
  });

  test("no risk if the only one does not work: that is a fault, which scan finds", () => {
    root.write(`${DIR}/00-first.conf`, JSON.stringify({ cniVersion: "1.0.0", name: "x", type: "gone" }));

    expect(staleConfRisk(files())).toEqual([]);
  });

  test.each<readonly [string, readonly (string | undefined)[], string | undefined]>([
    ["the same", ["1.0.0", "1.0.0"], undefined],
    ["different", ["1.0.0", "0.3.1"], '"cniVersion": "0.3.1"'],
    ["missing in one", ["1.0.0", undefined], '"cniVersion": "1.0.0"'],
  ])("cniVersion %s", (_, versions, end) => {
    for (const [index, cniVersion] of versions.entries())
      root.write(`${DIR}/${index}.conflist`, JSON.stringify({ ...bridge, cniVersion }));

    const [risk] = versionRisk(files());

    if (end === undefined) expect(risk).toBeUndefined();
    else expect(risk?.end).toContain(end);
  });
});

test.each<readonly [number, number, boolean]>([
  [128, 5, true],
  [8192, 5, false],
  [8192, 5000, true],
])("a limit of %i inotify instances with %i in use is a risk: %s", (limit, used, isRisk) => {
  const risks = inotifyRisk({ limit, used, holders: [] });
  expect(risks.map(({ end }) => end.startsWith("sysctl -w"))).toEqual(isRisk ? [true] : []);
});

describe("the clock of the machine", () => {
  const SOURCE = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

  test.each<readonly [string, string, boolean, boolean]>([
    ["a board without one", "arch_sys_counter\n", false, true],
    ["a machine with one", "tsc hpet\n", true, false],
    ["a virtual machine", "tsc kvm-clock\n", false, false],
  ])("%s", (_, source, hasClock, isRisk) => {
    root.write(SOURCE, source);
    if (hasClock) mkdirSync(root.join("/sys/class/rtc/rtc0"), { recursive: true });

    expect(clockRisk(root.path)).toHaveLength(isRisk ? 1 : 0);
  });

  test("nothing is known without /sys", () => {
    expect(clockRisk(root.path)).toEqual([]);
  });
});

describe("shim and daemon of multus", () => {
  const conf: CniConfig = {
    dir: "/etc/cni/net.d",
    binDirs: ["/opt/cni/bin"],
    file: "/etc/cni/net.d/00-multus.conf",
    plugins: [],
    ...THICK_MULTUS,
  };
  const daemon = {
    socket: "/run/multus/multus.sock",
    state: "answers",
    process: { pid: 7, startedSecondsAfterBoot: 1, isStopped: false },
  } as const;

  test.each<readonly [string, string | undefined, boolean]>([
    ["the same program", "4.3.0", false],
    ["another one", "4.3.1", true],
    ["one that cannot be read", undefined, false],
  ])("the shim on the node is %s", (_, installed, isRisk) => {
    root.write("/proc/7/root/usr/src/multus-cni/bin/multus-shim", "4.3.0");
    if (installed !== undefined) root.write("/opt/cni/bin/multus-shim", installed);

    expect(shimRisk(root.path, conf, daemon)).toHaveLength(isRisk ? 1 : 0);
  });
});

describe("DaemonSets of CNI plugins", () => {
  const container = { name: "agent", image: "example/multus:v4.3.0" };
  const protectedContainer = { ...container, resources: { limits: { memory: "1Gi" } }, readinessProbe: { exec: {} } };
  const metadata = { name: "p", namespace: "kube-system", ownerReferences: [{ kind: "DaemonSet", name: "cni" }] };
  const volumes = [{ hostPath: { path: "/etc/cni/net.d" } }];
  const spec = { containers: [container], volumes };

  test.each<readonly [string, Parameters<typeof riskOf>[0], RegExp | undefined]>([
    ["without anything", { metadata, spec }, /no priority class, no memory limit, no probe/],
    [
      "without a limit",
      { metadata, spec: { ...spec, priority: 2_000_001_000, containers: [{ ...container, livenessProbe: {} }] } },
      /has no memory limit:/,
    ],
    [
      "with all",
      { metadata, spec: { ...spec, priorityClassName: "system-node-critical", containers: [protectedContainer] } },
      undefined,
    ],
    ["of another kind", { metadata: { ...metadata, ownerReferences: [] }, spec }, undefined],
    ["that installs no plugin", { metadata, spec: { ...spec, volumes: [{ hostPath: { path: "/run" } }] } }, undefined],
    [
      "with two images",
      {
        metadata,
        spec: {
          ...spec,
          priority: 2_000_001_000,
          containers: [protectedContainer],
          initContainers: [{ name: "install", image: "example/multus:v4.3.1" }],
        },
      },
      /different images: .*v4\.3\.0, .*v4\.3\.1/,
    ],
  ])("%s", (_, pod, detail) => {
    const [risk] = riskOf(pod);

    if (detail === undefined) expect(risk).toBeUndefined();
    else expect(risk?.detail).toMatch(detail);
  });

  test("an answer without the structure of a list is no risk", async () => {
    const api = { get: () => Promise.resolve({ items: 7 }) } as unknown as Api;

    expect(await cniPodRisks(api, "node")).toEqual([]);
  });
});

test("risks are a section of their own, and the first line stays OK", () => {
  const text = renderDoctor(
    {
      apiVersion: "unghost.dev/v1",
      kind: "DoctorReport",
      version: "0",
      node: "n",
      hostRoot: "/",
      kernel: "6",
      os: "Linux",
      runtime: { name: "containerd", version: "2.3.4", endpoint: "unix:///x", reachable: true },
      kubernetes: { source: "none", credentials: "none" },
      checks: [],
      risks: [{ id: "inotify instances", detail: "the limit is 128", end: "sysctl -w x=1" }],
    },
    { colour: false, columns: 100, verbose: false },
  );

  expect(text).toMatch(
    /^OK .*\n(?:.*\n)*\nRisks\n {2}risk {2}inotify instances: the limit is 128\. Ended by: sysctl -w x=1\n/,
  );
});
