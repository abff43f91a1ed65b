import { existsSync, readFileSync } from "node:fs";
import { describe, expect } from "vitest";
import { bridgeNetwork, CNI_BIN_DIR, CNI_CONF_FILE } from "../../lab/cni-config.ts";
import { duplicateRecord } from "../../lab/faults/duplicate-record.ts";
import { emptyLease, leakedLease, unknownId, writeOld } from "../../lab/faults/host-local.ts";
import { leakedContainerdLease } from "../../lab/faults/leaked-containerd-lease.ts";
import { leakedNetns, leftoverNetnsFile } from "../../lab/faults/leaked-netns.ts";
import { leakedShim } from "../../lab/faults/leaked-shim.ts";
import { lostLink } from "../../lab/faults/lost-link.ts";
import { chainedNetwork, missingPlugin } from "../../lab/faults/missing-plugin.ts";
import { orphanedCache } from "../../lab/faults/orphaned-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { runPod } from "../../lab/pods.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, cniFiles, expectAlive, heal, healAll, isQuarantined, treeOf, unghostIn } from "./healed-node.ts";
import { company } from "./scanned-node.ts";

describe.skipIf(NO_REAL_NODE !== undefined)("heal of a node with leaks", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("releases addresses, files, namespaces and leases without an owner", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const before = cniFiles(node);
    const bare = await leakedLease(node, "10.88.200.1");
    const cached = await leakedLeaseWithCache(node, "10.88.200.3");
    const empty = await emptyLease(node, "10.88.200.2");
    const files = [
      await orphanedCache(node, "results"),
      await orphanedCache(node, "multus"),
      await orphanedCache(node, "flannel"),
    ];
    const namespaces = [await leakedNetns(node), await leftoverNetnsFile(node)];
    const lease = await leakedContainerdLease(node);

    const report = await healAll(node);

    expect(report.actions).toHaveLength(9);
    expect(cniFiles(node)).toEqual(before);
    for (const { path = "" } of [empty, ...files]) expect(isQuarantined(node, path)).toBe(true);
    // host-local releases an address itself, under its own lock: there is nothing to quarantine.
    expect([isQuarantined(node, bare.path ?? ""), isQuarantined(node, cached.cache)]).toEqual([false, true]);
    expect(readFileSync(node.path(WITNESS), "utf8").trim()).toBe(`DEL ${cached.id} eth0 []`);
    for (const { path = "" } of namespaces) expect(existsSync(node.livePath(path))).toBe(false);
    expect(await node.check(["ctr", "-n", "k8s.io", "leases", "ls", "-q"])).not.toContain(lease.sandboxId);
    await expectAlive(node, beside);
  });

  eachRuntime("reports the interface that the failed DEL of a cached chain leaves behind", async (runtime) => {
    const node = await start({ runtime });
    const link = await lostLink(node, "10.88.200.4");
    await node.writeFile(`${CNI_BIN_DIR}/bandwidth`, "#!/bin/sh\necho operation not permitted\nexit 1\n", 0o755);

    const report = await healAll(node);

    expect(report.actions).toMatchObject([
      { outcome: "healed", code: "del-incomplete", reason: expect.stringContaining(`interface ${link} `) },
    ]);
    expect((await node.exec(["ip", "link", "show", link])).code).toBe(0);
  });

  eachRuntime("never releases the address of a running pod, whatever owner is recorded", async (runtime) => {
    const node = await start({ runtime });
    const pod = await runPod(node, { name: "web" });
    const { status } = await node.cri.podSandboxStatus(pod.sandboxId, CALL);
    const { path = "" } = await leakedLease(node, status?.network?.ip);

    const { code, report } = await heal(node);

    expect(code).toBe(1);
    expect(report.actions).toMatchObject([
      { outcome: "refused", code: "address-in-use", reason: expect.stringContaining("a pod that runs") },
    ]);
    expect(existsSync(node.path(path))).toBe(true);
    await expectAlive(node, { ready: [pod], kept: [] });
  });

  eachRuntime("ends a leaked shim only when requested by name", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const leak = await leakedShim(node);
    const ofLeak = () => processesOf(node).filter(({ command }) => command.includes(leak.sandboxId ?? ""));
    const pauses = () =>
      processesOf(node).filter(({ command }) => command.join(" ").includes("sleep 1000000000")).length;
    const allPauses = pauses();

    const careful = await heal(node);
    expect([careful.code, careful.report.actions?.map(({ outcome }) => outcome)]).toEqual([1, ["skipped"]]);
    expect(ofLeak()).toHaveLength(1);

    await healAll(node, [...AT_ONCE, "--only", "shim-leak", "--allow", "shim-leak"]);
    expect(ofLeak()).toEqual([]);
    expect(pauses()).toBe(allPauses - 1);
    await expectAlive(node, beside);
  });

  eachRuntime("skips manual findings and prints their steps", async (runtime) => {
    const node = await start({ runtime, cni: chainedNetwork() });
    const pod = await runPod(node, { name: "web" });
    const duplicate = await duplicateRecord(node, pod);
    await missingPlugin(node);
    const before = treeOf(node.path("/var/lib/cni"));

    const { stdout, code } = await unghostIn(node, ["heal", "--yes", ...AT_ONCE]);

    expect(code).toBe(1);
    for (const words of ["Left alone (2)", "manual", "block every restart of the runtime", CNI_CONF_FILE]) {
      expect(stdout.replaceAll(/\s+/g, " ")).toContain(words);
    }
    expect(await node.check(["ctr", "-n", "k8s.io", "containers", "ls", "-q"])).toContain(duplicate.sandboxId);
    expect(treeOf(node.path("/var/lib/cni"))).toEqual(before);
    await expectAlive(node, { ready: [pod], kept: [] });
  });
});

const WITNESS = "/var/lib/witness";

/** Like leakedLease, with libcni's cached result: its plugins are called again, and one of them records it. */
async function leakedLeaseWithCache(node: LabNode, address: string): Promise<{ id: string; cache: string }> {
  const id = unknownId();
  const script = `#!/bin/sh\necho "$CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME [$CNI_NETNS]" >>${WITNESS}\n`;
  await node.writeFile(`${CNI_BIN_DIR}/witness`, script, 0o755);
  const network = bridgeNetwork();
  const config = { ...network, plugins: [...network.plugins, { type: "witness" }] };
  const cache = `/var/lib/cni/results/${network.name}-${id}-eth0`;
  const content = {
    kind: "cniCacheV1",
    containerId: id,
    config: Buffer.from(JSON.stringify(config)).toString("base64"),
    ifName: "eth0",
    networkName: network.name,
    result: { cniVersion: network.cniVersion, dns: {} },
  };
  await writeOld(node, cache, JSON.stringify(content));
  await writeOld(node, `/var/lib/cni/networks/${network.name}/${address}`, `${id}\r\neth0`);
  return { id, cache };
}
