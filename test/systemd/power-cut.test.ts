import { globSync, truncateSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { DOWNLOADED } from "../../lab/systemd/node.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { ALL_LAYOUTS, type BootedNode, HANG_GUARD_MS, LAYOUTS, systemdNode, WAIT_MS } from "./systemd-node.ts";

const PODS = ["web-0", "web-1", "web-2", "web-3"];

describe.each(ALL_LAYOUTS)("after a power cut (%s)", (layout) => {
  test(
    "the hook heals torn caches that block a stop before the runtime starts, and every pod runs again",
    async () => {
      const node = await systemdNode(layout);
      const before = await node.startPods(PODS);
      await node.install();
      await node.powerCut();
      const torn = tearCaches(node, 2);

      await node.powerOn();
      await node.waitForPods(PODS, before);

      const done = await node.changes();
      // containerd 2 stops a sandbox despite a torn cache: there the hook leaves it to kubelet.
      const healed = layout === "containerd 2" ? [] : torn;
      for (const file of healed) expect(done.map(({ text }) => text).join("\n")).toContain(file);
      const startedAt = await mainProcessStart(node);
      expect(done.filter(({ at }) => at >= startedAt)).toEqual([]);
      await until("the step after the start ends", WAIT_MS, async () =>
        (await node.show("unghost-boot-after.service", "ActiveState")) === "inactive" ? true : undefined,
      );
      expect(await node.show("unghost-boot-after.service", "Result")).toBe("success");
      await healthyScan(() => node.scan());
      const { lastBoot } = JSON.parse(await node.check([DOWNLOADED, "history", "-o", "json"]));
      expect(lastBoot).toMatchObject({ mode: "after", earlier: [{ mode: "before", healed: healed.length }] });
      expect(await node.journal("--identifier=unghost")).toContain(`unghost boot: ${lastBoot.earlier[0].outcome}, `);
      expect(await node.journal("--identifier=env", "--quiet")).not.toContain("unghost");
    },
    HANG_GUARD_MS,
  );
});

describe.each(LAYOUTS)("a broken hook after a power cut (%s)", (layout) => {
  test.each([
    ["hangs", "#!/bin/sh\nexec sleep 1000000000\n"],
    ["crashes", "#!/bin/sh\nkill -SEGV $$\n"],
    ["is not executable any more", "not a program\n"],
    ["is gone", undefined],
  ])(
    "a hook that %s does not prevent the node from starting",
    async (_what, program) => {
      const node = await systemdNode(layout);
      const before = await node.startPods(PODS.slice(0, 1));
      await node.install("--deadline-seconds", "1");
      if (program === undefined) await node.check(["rm", "/usr/local/bin/unghost"]);
      else await node.writeFile("/usr/local/bin/unghost", program, 0o755);
      await node.powerCut();

      await node.powerOn();
      await node.waitForPods(PODS.slice(0, 1), before);

      expect(await node.show(node.layout.unit, "ActiveState")).toBe("active");
    },
    HANG_GUARD_MS,
  );
});

function tearCaches(node: BootedNode, count: number): readonly string[] {
  const caches = globSync(node.path("/var/lib/cni/results/*")).slice(0, count);
  expect(caches).toHaveLength(count);
  for (const cache of caches) truncateSync(cache);
  return caches.map((cache) => cache.slice(cache.lastIndexOf("/") + 1));
}

/**
 * When the main process of the runtime's service was started, after everything that its unit runs or waits for before.
 */
async function mainProcessStart(node: BootedNode): Promise<Date> {
  const property = "--property=ExecMainStartTimestamp";
  const text = await node.check(["systemctl", "show", "--value", "--timestamp=us+utc", property, node.layout.unit]);
  // Such as "Mon 2026-11-16 05:12:00.123456 UTC".
  const [, day, time] = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d\.\d{3})/.exec(text) ?? [];
  return new Date(`${day}T${time}Z`);
}
