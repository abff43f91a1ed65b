import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { leakedShim } from "../../lab/faults/leaked-shim.ts";
import { type OtherContainerdOptions, runOtherContainerd } from "../../lab/other-containerd.ts";
import { runPod } from "../../lab/pods.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectGone, AT_ONCE as HEAL_AT_ONCE, heal } from "./healed-node.ts";
import { AT_ONCE, named, scan } from "./scanned-node.ts";
import { UNGHOST } from "./unghost.ts";

const containerId = "c0ffee00".repeat(8);
const LEASE = "/var/lib/cni/networks/lab/10.88.0.250";
const HEAL_ALL = [...HEAL_AT_ONCE, "--inflight-grace", "0s", "--all-dead"] as const;

describe.skipIf(NO_REAL_NODE !== undefined)("beside another runtime", { timeout: HANG_GUARD_MS }, () => {
  test.each<readonly [string, OtherContainerdOptions]>([
    ["a second containerd", { containerId }],
    [
      "Docker's containerd",
      {
        containerId,
        namespace: "moby",
        socket: "/run/docker/containerd/containerd.sock",
        cgroup: `/docker/${containerId}`,
      },
    ],
    ["a second containerd with Docker's namespace", { containerId, namespace: "moby" }],
  ])("%s: its containers and their files are not touched, and ghosts are healed", async (_what, options) => {
    const node = await start();
    const ghost = await runPod(node, { name: "ghost" });
    await node.powerCut();
    await node.powerOn();
    const other = await runOtherContainerd(node, options);
    await node.writeFile(LEASE, `${containerId}\r\neth0`);

    expect(named(await scan(node, AT_ONCE))).toEqual([`dead-after-crash/${ghost.sandboxId}`]);
    const { report } = await heal(node, HEAL_ALL);

    expect(report.remaining).toEqual([]);
    await expectGone(node, ghost);
    expect([existsSync(node.livePath(`/proc/${other.shimPid}`)), existsSync(node.path(LEASE))]).toEqual([true, true]);
  });

  test("a node inside the node, with its socket at the same path: its shims belong to it", async () => {
    const node = await start();
    const nested = await runOtherContainerd(node, { containerId, isolated: true });

    expect(named(await scan(node, AT_ONCE))).toEqual([]);
    const { report } = await heal(node, HEAL_ALL);

    expect(report.actions).toEqual([]);
    expect(existsSync(node.livePath(`/proc/${nested.shimPid}`))).toBe(true);
  });

  test("Docker's containers do not prevent boot from healing what died in a power cut", async () => {
    const node = await start();
    const ghost = await runPod(node, { name: "ghost" });
    await node.powerCut();
    await node.powerOn({ runtime: false });
    const other = await runOtherContainerd(node, {
      containerId,
      namespace: "moby",
      socket: "/run/docker/containerd/containerd.sock",
      cgroup: `/docker/${containerId}`,
    });

    const config = ["--containerd-config", "/etc/containerd/config.toml"];
    const { stdout } = await node.exec([UNGHOST, "boot", "--no-kube", ...config], { timeoutMs: HANG_GUARD_MS });

    expect(stdout).toContain("1 healed");
    expect(existsSync(node.livePath(`/proc/${other.shimPid}`))).toBe(true);
    await node.startRuntime();
    await expectGone(node, ghost);
  });

  test("the node's own leaked shim is still found beside them", async () => {
    const node = await start();
    await runOtherContainerd(node, { containerId });
    const leaked = await leakedShim(node);

    expect(named(await scan(node, AT_ONCE))).toEqual([`shim-leak/pid-${leaked.pid}`]);
  });
});
