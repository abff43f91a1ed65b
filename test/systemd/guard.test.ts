import { describe, expect, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { DOWNLOADED } from "../../lab/systemd/node.ts";
import type { GuardStatus } from "../../src/guard/install/status.ts";
import { type BootedNode, HANG_GUARD_MS, systemdNode, WAIT_MS } from "./systemd-node.ts";

const PODS = ["web-0", "web-1"];

async function isInEffect(node: BootedNode): Promise<boolean> {
  const { stdout } = await node.exec([DOWNLOADED, "cni", "status", "-o", "json"]);
  return (JSON.parse(stdout) as GuardStatus).inEffect;
}

/** With a restart of the runtime under running pods. */
async function cni(node: BootedNode, action: "install" | "uninstall"): Promise<void> {
  const before = await node.runningPods();
  await node.check([DOWNLOADED, "cni", action, "--restart", "--yes"]);
  await until("the runtime answers again", WAIT_MS, () => node.runningPods().catch(() => undefined));
  expect(await node.runningPods()).toEqual(before);
}

describe.each(["containerd", "containerd 2"] as const)("the CNI guard under systemd (%s)", (layout) => {
  test(
    "is put into effect by --restart under running pods, is there after a power cut, and goes in the same way",
    async () => {
      const node = await systemdNode(layout);
      await node.startPods(PODS);
      await cni(node, "install");
      expect(await isInEffect(node)).toBe(true);
      const guarded = await node.startPods([...PODS, "web-2"]);

      await node.powerCut();
      await node.powerOn();
      await node.waitForPods([...PODS, "web-2"], guarded);
      expect(await isInEffect(node)).toBe(true);

      await cni(node, "uninstall");
      expect(await isInEffect(node)).toBe(false);
      await node.startPods([...PODS, "web-2", "web-3"]);
      expect(await node.check(["ls", "/opt/unghost"])).toBe("");
    },
    HANG_GUARD_MS,
  );
});
