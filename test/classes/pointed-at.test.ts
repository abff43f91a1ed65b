import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { valueOr } from "../../src/host/source.ts";
import { readKernelLog } from "../../src/node/kernel-log.ts";
import { readPointedAt } from "../../src/node/pointed-at.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { Kubernetes, Snapshot } from "../../src/node/types/snapshot.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import { klog } from "../support/log-lines.ts";
import { idOf, type NodeParts, PATIENT, resultOf, sandboxOf, snapshotOf } from "../support/snapshot-builder.ts";
import { tempDir } from "../support/temp-dir.ts";

const CONF = "/etc/cni/net.d";
const BIN = "/opt/cni/bin";

let root: ReturnType<typeof tempDir>;
beforeEach(() => {
  root = tempDir();
});
afterEach(() => root.remove());

function plugin(type: string, more: object = {}): string {
  root.write(`${BIN}/${type}`, "", 0o755);
  return JSON.stringify({ cniVersion: "1.0.0", name: type, plugins: [{ type, ...more }] });
}

/** kubelet's line of a creation that the network plugin refused, seconds ago. */
function runFailed(cause: string, secondsAgo = 20): string {
  const error = `rpc error: code = Unknown desc = failed to setup network for sandbox "${idOf("a")}": ${cause}`;
  return klog(secondsAgo, `"RunPodSandbox from runtime service failed" err=${JSON.stringify(error)}`);
}

function found(parts: NodeParts, sources: Partial<Snapshot> = {}): readonly string[] {
  const { lines } = valueOr(snapshotOf(parts).logs, undefined) ?? { lines: [] };
  const pointedAt = readPointedAt({ root: root.path, confDir: CONF, binDirs: [BIN], lines });
  return named(diagnosed(parts, PATIENT, { pointedAt, ...sources }));
}

/** As the kernel prints its table of routes: little-endian addresses, padded columns. */
const ROUTES = (rows: readonly string[]) =>
  [
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT",
    "eth0\t00000000\t0102000A\t0003\t0\t0\t100\t00000000\t0\t0\t0",
    "eth0\t0002000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0",
    ...rows,
    "",
  ].join("\n");

describe("an address of the bridge from another range", () => {
  const ERROR =
    'plugin type="flannel" failed (add): failed to delegate add: failed to set bridge addr: "cni0" already has an IP address different from 10.244.3.1/24';

  test.each<readonly [string, readonly string[], string, boolean]>([
    ["is found", ["cni0\t0009F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"], ERROR, true],
    ["was repaired since", ["cni0\t0003F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"], ERROR, false],
    ["of a bridge that was deleted", [], ERROR, false],
    [
      "without an error about it",
      ["cni0\t0009F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"],
      "something else",
      false,
    ],
  ])("%s", (_, rows, error, isFound) => {
    root.write("/proc/1/net/route", ROUTES(rows));

    expect(found({ logLines: [runFailed(error)] })).toEqual(isFound ? ["stale-bridge-address/cni0"] : []);
  });

  test("an error of an hour ago proves nothing", () => {
    root.write("/proc/1/net/route", ROUTES(["cni0\t0009F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"]));

    expect(found({ logLines: [runFailed(ERROR, 3_600)] })).toEqual([]);
  });
});

describe("a route that is left from another pod", () => {
  const ERROR =
    "plugin type=\"calico\" failed (add): error adding host side routes for interface: cali77, error: route (Ifindex: 41, Dst: 10.42.0.7/32, Scope: link) already exists for an interface other than 'cali77'";
  const ID = "stale-host-route/route 10.42.0.7/32";
  const LEFT = "cali11\t07002A0A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0";

  test.each<readonly [string, readonly string[], boolean]>([
    ["over another interface", [LEFT], true],
    ["over the plugin's own", [LEFT.replace("cali11", "cali77")], false],
    ["that is gone", [], false],
  ])("%s", (_, rows, isFound) => {
    root.write("/proc/1/net/route", ROUTES(rows));

    expect(found({ logLines: [runFailed(ERROR)] })).toEqual(isFound ? [ID] : []);
  });

  test("of a running pod is no left-over: the address was handed out twice", () => {
    root.write("/proc/1/net/route", ROUTES([LEFT]));
    const parts: NodeParts = {
      sandboxes: [sandboxOf("b", { state: "ready" })],
      results: [{ ...resultOf("b"), addresses: ["10.42.0.7/32"] }],
      logLines: [runFailed(ERROR)],
    };
    const { lines } = valueOr(snapshotOf(parts).logs, undefined) ?? { lines: [] };
    const pointedAt = readPointedAt({ root: root.path, confDir: CONF, binDirs: [BIN], lines });

    const [finding] = diagnosed(parts, PATIENT, { pointedAt }).findings;

    expect(finding?.id).toBe(ID);
    expect(finding?.untreatable).toContain("handed out twice");
    expect(finding?.untreatable).not.toContain("ip route del");
  });
});

describe("a configuration in front", () => {
  const ERROR =
    'plugin type="multus" name="multus-cni-network" failed (add): Multus: failed to get context for the kubeconfig /etc/cni/net.d/multus.d/multus.kubeconfig: stat /etc/cni/net.d/multus.d/multus.kubeconfig: no such file or directory';
  const stale = (files: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(files)) root.write(`${CONF}/${name}`, text);
    return found({ logLines: [runFailed(ERROR)] });
  };
  const MULTUS = () => plugin("multus", { kubeconfig: `${CONF}/multus.d/multus.kubeconfig` });

  test("of an add-on that is gone hides the one that works", () => {
    expect(stale({ "00-multus.conflist": MULTUS(), "10-flannel.conflist": plugin("bridge") })).toEqual([
      `stale-cni-conf-first/${CONF}/00-multus.conflist`,
    ]);
  });

  test("without another one behind it is not stale: its add-on may just not be up yet", () => {
    expect(stale({ "00-multus.conflist": MULTUS() })).toEqual([]);
  });

  test("behind the one that works does no harm", () => {
    expect(stale({ "10-flannel.conflist": plugin("bridge"), "99-multus.conflist": MULTUS() })).toEqual([]);
  });
});

describe("the authority in a plugin's kubeconfig", () => {
  const ERROR =
    'plugin type="calico" failed (add): error getting ClusterInformation: Get "https://10.96.0.1:443/": tls: failed to verify certificate: x509: certificate signed by unknown authority';
  const kubeconfig = (pem: string) =>
    `clusters:\n- name: local\n  cluster:\n    certificate-authority-data: "${Buffer.from(pem).toString("base64")}"\n`;

  test("is found when the cluster has another one, and only then", () => {
    const [old, current] = [authority("old"), authority("current")];
    root.write(
      `${CONF}/10-calico.conflist`,
      plugin("calico", { kubernetes: { kubeconfig: `${CONF}/calico-kubeconfig` } }),
    );
    root.write("/etc/kubernetes/pki/ca.crt", current);
    const parts = { logLines: [runFailed(ERROR)] };

    root.write(`${CONF}/calico-kubeconfig`, kubeconfig(old));
    expect(found(parts)).toEqual([`cni-kubeconfig-ca-stale/${CONF}/calico-kubeconfig`]);
    root.write(`${CONF}/calico-kubeconfig`, kubeconfig(current));
    expect(found(parts)).toEqual([]);
    root.write(`${CONF}/calico-kubeconfig`, kubeconfig(`${old}\n${current}`));
    expect(found(parts)).toEqual([]);
    root.write(`${CONF}/calico-kubeconfig`, "users: []\n");
    expect(found(parts)).toEqual([]);
  });

  function authority(name: string): string {
    const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const files = ["-keyout", root.join(`${name}.key`), "-subj", `/CN=${name}`];
    return execFileSync("openssl", [...args, ...files], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  }
});

describe("memory cgroups of the kernel", () => {
  const ERROR =
    "failed to create containerd task: failed to create shim task: mkdir /sys/fs/cgroup/memory/kubepods/besteffort/poda: no space left on device";
  const TABLE = (count: number, hierarchy = 7) =>
    `#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t3\t212\t1\nmemory\t${hierarchy}\t${count}\t1\n`;

  test.each<readonly [string, string, boolean]>([
    ["are used up", TABLE(65_412), true],
    ["are plenty", TABLE(512), false],
    ["are counted differently on cgroup v2", TABLE(65_412, 0), false],
  ])("%s", (_, table, isFound) => {
    root.write("/proc/cgroups", table);

    expect(found({ logLines: [runFailed(ERROR)] })).toEqual(isFound ? ["memory-cgroups-exhausted//proc/cgroups"] : []);
  });
});

describe("the cgroup of a pod", () => {
  const UID = "9b1c7c5e-5e5c-4a0e-8d53-0f4b7f2f6c11";
  const SLICE = `/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${UID.replaceAll("-", "_")}.slice`;
  const LINE = klog(
    20,
    `"Failed to delete cgroup paths" cgroupName=["kubepods","burstable","pod${UID}"] err="unable to destroy cgroup paths for cgroup [kubepods burstable pod${UID}] : Timed out while waiting for systemd to remove kubepods-burstable-pod${UID.replaceAll("-", "_")}.slice"`,
  );
  const api = (uids: readonly string[]): Kubernetes => ({
    source: "api",
    pods: uids.map((uid) => ({ namespace: "shop", name: "web-0", uid: podUid(uid) })),
    holds: { paused: false, node: false, namespaces: [] },
  });

  test.each<readonly [string, string, Kubernetes, boolean]>([
    ["that is gone has processes", "4711\n4712\n", api([]), true],
    ["that is gone is empty", "", api([]), false],
    ["that exists has processes", "4711\n", api([UID]), false],
    ["has processes, and no API server knows its pod", "4711\n", { source: "none" }, false],
  ])("%s", (_, procs, kubernetes, isFound) => {
    root.write(`${SLICE}/cgroup.procs`, "");
    root.write(`${SLICE}/cri-containerd-1f.scope/cgroup.procs`, procs);

    expect(found({ logLines: [LINE] }, { kubernetes })).toEqual(isFound ? [`pod-cgroup-busy/${SLICE}`] : []);
  });
});

describe("signals of runc that AppArmor refuses", () => {
  const DENIED =
    '5,911,712345678,-;audit: type=1400 audit(1760000000.1:77): apparmor="DENIED" operation="signal" class="signal" profile="cri-containerd.apparmor.d" pid=81 comm="runc" requested_mask="receive" denied_mask="receive" signal=kill peer="runc"\n';
  const stopFailed = klog(
    20,
    `"StopPodSandbox from runtime service failed" err=${JSON.stringify(`rpc error: code = Unknown desc = failed to stop container "${idOf("c")}": failed to kill container "${idOf("c")}": unknown error after kill: runc did not terminate successfully: exit status 1: unable to signal init: permission denied\n: unknown`)} podSandboxID="${idOf("a")}"`,
  );

  test.each<readonly [string, string, readonly string[], boolean]>([
    ["are found with the removal that failed for them", DENIED, [stopFailed], true],
    ["without a removal that fails", DENIED, [], false],
    ["of a removal that fails for another reason", "", [stopFailed], false],
    [
      "of another program",
      DENIED.replace('comm="runc"', 'comm="snapd"').replace('peer="runc"', 'peer="snapd"'),
      [stopFailed],
      false,
    ],
  ])("%s", async (_, kmsg, logLines, isFound) => {
    root.write("/dev/kmsg", `6,0,0,-;Linux version 6.1\n${kmsg}`);
    const kernel = await readKernelLog({ root: root.path });

    const findings = named(diagnosed({ logLines }, PATIENT, { kernel }));

    expect(findings).toEqual(isFound ? ["runc-signal-denied//etc/apparmor.d"] : []);
  });
});
