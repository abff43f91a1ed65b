import { describe, expect } from "vitest";
import { orderAtGate } from "../../lab/cni-gate.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import { runPods } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { readHistory } from "../../src/heal/journal/reader.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectGone } from "./healed-node.ts";
import { startHeal } from "./running-heal.ts";
import { AT_ONCE, named, scan } from "./scanned-node.ts";

describe.skipIf(NO_REAL_NODE !== undefined)("scan beside a heal", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("reports findings being healed as before; after a killed heal as found", async (runtime) => {
    const node = await start({ runtime });
    const pods = await runPods(node, 3, { name: "ghost", containers: [{ name: "main" }] });
    await node.powerCut();
    await node.powerOn();
    for (const pod of pods) {
      await emptyResultCache(node, pod);
      await orderAtGate(node, "DEL", pod.ref.name, "while [ ! -e /var/lib/go ]; do sleep 0.1; done\n");
    }
    const before = await scan(node, AT_ONCE);

    const killed = startHeal(node);
    await until("all caches are in quarantine and a removal is in flight", HANG_GUARD_MS, async () => {
      const { records } = await readHistory(node.path("/var/lib/unghost/journal"));
      const isRemoving = records.some(({ state, action }) => state === "open" && action.kind === "remove-sandbox");
      const moved = records.filter(({ state, action }) => state === "done" && action.kind === "quarantine-file").length;
      return moved >= pods.length && isRemoving ? true : undefined;
    });
    const during = await scan(node, AT_ONCE);
    await killed.signal("KILL");
    await killed.ended;
    const after = await scan(node, AT_ONCE);
    await node.writeFile("/var/lib/go", "");
    await startHeal(node).ended;

    expect(before.findings).toHaveLength(pods.length);
    expect([during.verdict, named(during)]).toEqual(["ghosts", named(before)]);
    expect(sourcesOf(during)).toContain("unghost journal");
    expect(after.findings.length).toBeGreaterThan(0);
    expect(sourcesOf(after)).not.toContain("unghost journal");
    expect(named(await scan(node, AT_ONCE))).toEqual([]);
    await expectGone(node, ...pods);
  });
});

function sourcesOf({ findings }: NodeReport): readonly string[] {
  return findings.flatMap(({ evidence }) => evidence.map(({ source }) => source));
}
