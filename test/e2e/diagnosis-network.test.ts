import { describe, expect, test } from "vitest";
import { bridgeNetwork, CNI_CONF_FILE } from "../../lab/cni-config.ts";
import { useNetwork } from "../../lab/cni-network.ts";
import { hangingDel, hungAdd, pluginOf } from "../../lab/faults/hung-plugin.ts";
import { chainedNetwork, missingNetwork, missingPlugin } from "../../lab/faults/missing-plugin.ts";
import { failedRollback, refusingDel } from "../../lab/faults/refusing-plugin.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import { runPod, sandboxConfig } from "../../lab/pods.ts";
import { containerdRelease } from "../../lab/runtimes.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, company, expectUntouched, named, scan } from "./scanned-node.ts";

const SHORT_CALL = { timeoutMs: 1000 };

describe.skipIf(NO_REAL_NODE !== undefined)("scan of a node with a broken network", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("reports the creation that holds a name, after the grace period", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);

    const hung = await hungAdd(node, { name: "web" });
    const again = sandboxConfig({ name: "web", uid: hung.ref.uid });
    await expect(node.cri.runPodSandbox(again, CALL)).rejects.toThrow("failed to reserve sandbox name");

    const young = await scan(node);
    expect([young.verdict, named(young)]).toEqual(["degraded", []]);
    expect(young.pending).toMatchObject([{ reason: "creation-retrying", sandboxId: hung.sandboxId }]);
    expect(young.kept).toContainEqual(expect.objectContaining({ sandboxId: hung.sandboxId, pod: hung.ref }));
    const old = await scan(node, AT_ONCE);
    expect(named(old)).toEqual([`sandbox-name-held-by-inflight-run/${hung.sandboxId}`]);
    expect(old.findings[0]?.subject).toMatchObject({ name: hung.reservedName, pod: hung.ref, pid: hung.pid });
    expectUntouched(old, beside);
  });

  test("reports the bridge and the route that errors of the plugin point at, and nothing of a repaired one", async () => {
    const node = await start({ runtime: "2.3" });
    const beside = await company(node);
    await node.check(["ip", "route", "add", "10.88.200.7/32", "dev", "cni0"]);
    const bridge = (subnet: string) =>
      `failed to set bridge addr: "cni0" already has an IP address different from ${subnet}`;
    const route = (address: string) =>
      `error adding host side routes for interface: cali7, error: route (Ifindex: 41, Dst: ${address}/32, Scope: link) already exists for an interface other than 'cali7'`;
    const errors = [bridge("10.244.3.1/24"), route("10.88.200.7"), route("10.88.200.8")];
    for (const [index, message] of errors.entries()) await failedRollback(node, { name: `refused-${index}` }, message);

    const report = await scan(node, AT_ONCE);

    expect(named(report)).toEqual(["stale-bridge-address/cni0", "stale-host-route/route 10.88.200.7/32"]);
    expectUntouched(report, beside);
  });

  eachRuntime("reports a hung removal, after the grace period", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const pod = await runPod(node, { name: "web" });
    await hangingDel(node, pod);
    await expect(node.cri.stopPodSandbox(pod.sandboxId, SHORT_CALL)).rejects.toThrow(RuntimeError);

    expect(named(await scan(node, ["--no-kube", "--min-age", "0s"]))).toEqual([]);
    const old = await scan(node, AT_ONCE);
    expect(named(old)).toEqual([`del-timeout-killed/pid-${pluginOf(node, "DEL", "web")?.pid}`]);
    expectUntouched(old, beside);
  });

  eachRuntime("reports the cached result that makes a stop fail", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const pod = await runPod(node, { name: "web", containers: [{ name: "main" }] });
    const { path } = await emptyResultCache(node, pod);
    await node.cri.stopPodSandbox(pod.sandboxId, CALL).catch(refused);

    const report = await scan(node);
    // libcni in containerd 2.x ignores it, and the stop succeeds.
    const expected = containerdRelease(runtime).corruptResultBlocks
      ? [`libcni-result-cache-corrupt/${pod.sandboxId}`]
      : [];
    expect(named(report)).toEqual(expected);
    for (const { subject, evidence } of report.findings) {
      expect(subject.path).toBe(path);
      expect(evidence.at(-1)).toMatchObject({ source: "logs", fact: expect.stringContaining("cached result") });
    }
    expectUntouched(report, beside);
  });

  eachRuntime("reports a failed creation that could not be rolled back", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);

    const ghost = await failedRollback(node, { name: "web" });

    const report = await scan(node);
    // containerd 2.x releases such a sandbox: nothing is left to find.
    const stays = containerdRelease(runtime).failedRollback === "stays with zero time";
    const expected = stays ? [`failed-rollback-unknown-sandbox/${ghost?.sandboxId}`] : [];
    expect(named(report)).toEqual(expected);
    expectUntouched(report, beside);
  });

  eachRuntime("reports the missing plugin, and not the pods that it blocks", async (runtime) => {
    const node = await start({ runtime, cni: chainedNetwork() });
    const beside = await company(node);

    await missingPlugin(node);
    await expect(runPod(node, { name: "next" })).rejects.toThrow("failed to find plugin");

    const report = await scan(node);
    expect(named(report)).toEqual([`chained-plugin-binary-missing/${CNI_CONF_FILE}`]);
    expect(report.findings[0]?.subject).toMatchObject({ type: "node", name: "tuning" });
    expectUntouched(report, beside);
  });

  eachRuntime("reports no ghost for what was taken down after the pod network changed", async (runtime) => {
    const node = await start({ runtime });
    const ready = await runPod(node, { name: "busy", containers: [{ name: "main" }] });
    const bare = await runPod(node, { name: "bare" });
    await useNetwork(node, { ...bridgeNetwork(), name: "other" });
    await node.cri.stopPodSandbox(bare.sandboxId, CALL);

    const report = await scan(node, AT_ONCE);

    expect(report.kept).toMatchObject([{ sandboxId: bare.sandboxId, code: "not-stuck" }]);
    expectUntouched(report, { ready: [ready], kept: [bare] });

    // What the earlier network left is a leak, once the runtime has no such sandbox any more.
    await node.cri.removePodSandbox(bare.sandboxId, CALL);
    const [leak] = (await scan(node, AT_ONCE)).findings;
    expect(leak).toMatchObject({ class: "hostlocal-ip-leak-after-reboot", kind: "leak" });
  });

  eachRuntime("reports the missing network, and not the pods that it blocks", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);

    await missingNetwork(node);
    await expect(runPod(node, { name: "next" })).rejects.toThrow("cni");

    const report = await scan(node);
    expect(named(report)).toEqual(["cni-not-initialized/NetworkReady"]);
    expectUntouched(report, beside);
  });

  eachRuntime("reports the class from the runtime's log when there is no other sign", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const down = await runPod(node, { name: "down" });
    const odd = await runPod(node, { name: "odd" });
    const finished = await runPod(node, { name: "finished", containers: [{ name: "job", command: ["true"] }] });
    await refusingDel(node, down, "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: connection refused");
    await refusingDel(node, finished, "error getting ClusterInformation: connection is unauthorized: Unauthorized");

    // On a node without multus this is nothing that unghost knows.
    await refusingDel(node, odd, "Invalid Configuration; server_socket is required in cni.conf");

    for (const { sandboxId } of [down, finished, odd]) {
      await expect(node.cri.stopPodSandbox(sandboxId, CALL)).rejects.toThrow("failed to destroy network");
    }

    const report = await scan(node);
    expect(named(report)).toEqual(
      [
        `calico-unauthorized/${finished.sandboxId}`,
        `cni-daemon-socket-down/${down.sandboxId}`,
        `removal-fails-unknown-cause/${odd.sandboxId}`,
      ].toSorted(),
    );
    expect(report.findings.find(({ subject }) => subject.sandboxId === odd.sandboxId)?.summary).toContain(
      "the answer is «Invalid Configuration; server_socket is required in cni.conf»",
    );
    for (const { evidence } of report.findings) expect(evidence.map(({ source }) => source)).toContain("logs");
    expectUntouched(report, beside);
  });
});

function refused(error: unknown): void {
  if (!(error instanceof RuntimeError) || error.kind !== "refused") throw error;
}
