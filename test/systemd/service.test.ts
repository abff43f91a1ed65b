import { describe, expect, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { DOWNLOADED } from "../../lab/systemd/node.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { type BootedNode, HANG_GUARD_MS, LAYOUTS, systemdNode, WAIT_MS } from "./systemd-node.ts";

const PODS = ["web-0", "web-1"];

describe.each(LAYOUTS)("the installed hook (%s)", (layout) => {
  test(
    "does not touch running pods while the runtime's service is restarted",
    async () => {
      const node = await systemdNode(layout);
      await node.install();
      const before = await node.startPods(PODS);

      await node.check(["systemctl", "restart", node.layout.unit]);
      await until("the runtime answers again", WAIT_MS, () => node.runningPods().catch(() => undefined));
      await until("the step after the start has ended", WAIT_MS, async () => {
        const state = await node.show("unghost-boot-after.service", "ActiveState");
        const endedAt = await node.show("unghost-boot-after.service", "ExecMainExitTimestampMonotonic");
        return state === "inactive" && endedAt !== "0" ? true : undefined;
      });

      expect(await node.runningPods()).toEqual(before);
      expect(await node.changes()).toEqual([]);
    },
    HANG_GUARD_MS,
  );

  test(
    "is replaced by an upgrade and removed by an uninstall, and the node boots after both",
    async () => {
      const node = await systemdNode(layout);
      const first = await node.startPods(PODS);
      await node.install();
      const units = await ownFiles(node);

      // Another build of the same program.
      await node.check(["sh", "-c", `printf '\\0' >>${DOWNLOADED}`]);
      await node.install("--deadline-seconds", "40");
      expect(await ownFiles(node)).toEqual(units);
      await node.check(["cmp", DOWNLOADED, "/usr/local/bin/unghost"]);
      await node.powerCut();
      await node.powerOn();
      const second = await node.waitForPods(PODS, first);
      expect(await node.check(["systemctl", "cat", "unghost-boot-after.service", node.layout.unit])).toContain(
        "unghost",
      );

      await node.check([DOWNLOADED, "uninstall", "--purge", "--force", "--yes"]);
      expect(await ownFiles(node)).toEqual([]);
      await node.powerCut();
      await node.powerOn();
      await node.waitForPods(PODS, second);
      expect(await node.check(["systemctl", "list-units", "--all", "--plain", "--no-legend", "unghost*"])).toBe("");
    },
    HANG_GUARD_MS,
  );
});

test(
  "an agent follows journald for the runtime's and kubelet's units, and heals after a line",
  async () => {
    const node = await systemdNode();
    const before = await node.startPods(PODS);
    const start = ["systemd-run", "--unit=unghost-agent", DOWNLOADED, "agent", "--min-age=0s", "--log-level=debug"];
    await node.check([...start, "--scan-every=1h"]);
    await until("the agent follows the journal", WAIT_MS, async () =>
      /journalctl/.test(await node.check(["systemctl", "status", "--no-pager", "unghost-agent"])) ? true : undefined,
    );

    await node.check(["sh", "-c", "for file in /var/lib/cni/results/*; do : >$file; done"]);
    await node.check(["sh", "-c", "ctr -n k8s.io tasks ls -q | xargs -n 1 ctr -n k8s.io tasks kill -s KILL"]);
    await node.waitForPods(PODS, before);

    // Files and events of the runtime wake the agent, too: the journal has to have had its part.
    await until("lines in the journal cause a scan", WAIT_MS, async () =>
      (await node.journal("--unit=unghost-agent")).includes('"from":"lines in the journal"') ? true : undefined,
    );
    await until("the agent has healed both", WAIT_MS, async () => {
      const healed = (await node.journal("--unit=unghost-agent")).match(/"msg":"ghost healed"/g) ?? [];
      return healed.length >= PODS.length ? true : undefined;
    });
    await healthyScan(() => node.scan());
  },
  HANG_GUARD_MS,
);

async function ownFiles(node: BootedNode): Promise<readonly string[]> {
  const found = await node.check(["find", "/etc", "/usr", "/var/lib", "-xdev", "-name", "*unghost*"]);
  return found.split("\n").filter(Boolean).toSorted();
}
