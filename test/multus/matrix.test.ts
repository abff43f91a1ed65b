import { describe, expect, test } from "vitest";
import { runMultusPod } from "../../lab/faults/multus.ts";
import { killRuntimeMidAdd, wedgeMultusDaemon } from "../../lab/faults/thick-multus.ts";
import { startThickMultus, useThickMultus } from "../../lab/multus-thick.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { until } from "../../lab/poll.ts";
import type { RuntimeVersion } from "../../lab/runtimes.ts";
import { expectAlive, heal, healAll, listedIds } from "../e2e/healed-node.ts";
import { HAS_MULTUS, WHY_NO_MULTUS } from "../e2e/multus-node.ts";
import { expectAllRunAgain, expectKubeletCanRemove, powerCutUnderThinMultus } from "../e2e/multus-power-cut.ts";
import { startHeal } from "../e2e/running-heal.ts";
import { kubeletKnows } from "../e2e/scanned-node.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { HANG_GUARD_MS, start } from "../lab/real-node.ts";

const RUNTIMES: readonly RuntimeVersion[] = ["1.6", "2.1", "2.3"];
const PODS = 24;

/** Sandboxes for which a shim runs DEL. */
function delsUnderWay(node: LabNode): number {
  const dels = processesOf(node).filter(({ environment }) => environment.get("CNI_COMMAND") === "DEL");
  return new Set(dels.map(({ environment }) => environment.get("CNI_CONTAINERID"))).size;
}

describe.skipIf(!HAS_MULTUS).each(RUNTIMES)(`multus on containerd %s${WHY_NO_MULTUS}`, (runtime) => {
  test.each(["4.2.3", "4.3.0"] as const)(
    "thick %s: heal removes incomplete sandboxes after containerd was killed during ADD",
    async (version) => {
      const node = await start({ runtime });
      await useThickMultus(node, version);
      const running = await runMultusPod(node, { name: "runs", containers: [{ name: "main" }] });
      const { refs } = await killRuntimeMidAdd(node, PODS);
      kubeletKnows(node, ...refs.map((ref) => ({ ref })), running);

      await healAll(node, ["--min-age", "0s"]);

      expect(await listedIds(node)).toEqual([running.sandboxId]);
      await expectAlive(node, { ready: [running], kept: [] });
    },
  );

  test("thick: heal sends a hung daemon two DELs and no more", async () => {
    const node = await start({ runtime });
    await useThickMultus(node);
    for (let index = 0; index < PODS; index += 1) await runMultusPod(node, { name: `pod-${index}` });
    await node.powerCut();
    await node.powerOn();
    await startThickMultus(node);
    await wedgeMultusDaemon(node);

    const running = startHeal(node);
    let most = 0;
    await until("heal gives up", HANG_GUARD_MS, () => {
      most = Math.max(most, delsUnderWay(node));
      return running.hasEnded() || undefined;
    });

    expect((await running.ended).stdout).toContain("no more are tried");
    expect(most).toBeLessThanOrEqual(2);
  });

  test("thin: heal restores all pods after a power cut beside a running kubelet", async () => {
    const node = await start({ runtime });
    const pods = await powerCutUnderThinMultus(node, PODS);

    const { code, report } = await heal(node, []);

    expect([code, report.remaining]).toEqual([0, []]);
    await expectAllRunAgain(node, pods);
    await expectKubeletCanRemove(node, pods);
  });

  test("thin: the agent alone restores all pods after a power cut", async () => {
    const node = await start({ runtime });
    const pods = await powerCutUnderThinMultus(node, PODS);

    await node.check(["sh", "-c", `setsid ${UNGHOST} agent --listen "" </dev/null >/var/log/agent.log 2>&1 &`]);

    await expectAllRunAgain(node, pods);
    await expectKubeletCanRemove(node, pods);
  });
});
