import { describe, expect, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { DOWNLOADED } from "../../lab/systemd/node.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { ALL_LAYOUTS, HANG_GUARD_MS, systemdNode, WAIT_MS } from "./systemd-node.ts";

const PODS = ["web-0", "web-1"];

describe.each(ALL_LAYOUTS)("an orderly shutdown (%s)", (layout) => {
  test(
    "hook and agent do not delay it, and every pod runs again after the next boot",
    async () => {
      const node = await systemdNode(layout);
      await node.check(["mkdir", "-p", "/var/log/journal"]);
      await node.check(["systemctl", "restart", "systemd-journald"]);
      await node.install();
      const before = await node.startPods(PODS);
      const start = ["systemd-run", "--unit=unghost-agent", "--property=TimeoutStopSec=90s"];
      await node.check([...start, DOWNLOADED, "agent", "--scan-every=1h"]);
      await until("the agent has scanned", WAIT_MS, async () =>
        (await node.journal("--unit=unghost-agent")).includes('"msg":') ? true : undefined,
      );

      await node.shutDown();
      await node.powerOn();
      const after = await node.waitForPods(PODS, before);

      expect(after.size).toBe(PODS.length);
      const lastBoot = await node.check(["journalctl", "--boot=-1", "--no-pager", "--unit=unghost-agent"]);
      expect(lastBoot).toContain("Deactivated successfully");
      expect(lastBoot).not.toMatch(/timed out|SIGKILL|Failed with result/);
      const failed = await node.check(["systemctl", "list-units", "--failed", "--plain", "--no-legend"]);
      expect(failed).not.toContain("unghost");
      await until("the step after the start ends", WAIT_MS, async () =>
        (await node.show("unghost-boot-after.service", "ActiveState")) === "inactive" ? true : undefined,
      );
      expect(await node.show("unghost-boot-after.service", "Result")).toBe("success");
      await healthyScan(() => node.scan());
      expect(await node.runningPods()).toEqual(after);
    },
    HANG_GUARD_MS,
  );
});
