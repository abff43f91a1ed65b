import { describe, expect, test } from "vitest";
import { killedMonitors } from "../../lab/faults/killed-monitors.ts";
import { acceptDel, refusingDel } from "../../lab/faults/refusing-plugin.ts";
import { emptyResultCache, halfWrittenResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPod } from "../../lab/pods.ts";
import { expectAlive, healAll, isQuarantined, listedIds, unghostIn } from "../e2e/healed-node.ts";
import { AT_ONCE, company, expectUntouched, named, scan } from "../e2e/scanned-node.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE } from "../lab/real-node.ts";
import { crioNode, expectReleased } from "./crio-node.ts";

const containers = [{ name: "main" }] as const;

async function explain(node: LabNode, text: string): Promise<readonly string[]> {
  const { stdout } = await unghostIn(node, ["explain", "-o", "json", text]);
  const answer: { readonly matches: readonly { readonly class: string }[] } = JSON.parse(stdout);
  return answer.matches.map(({ class: id }) => id);
}

describe.skipIf(NO_REAL_NODE !== undefined)("on a real CRI-O", { timeout: HANG_GUARD_MS }, () => {
  test("scan calls running and finished pods healthy", async () => {
    const node = await crioNode();
    const beside = await company(node);

    const report = await scan(node, AT_ONCE);

    expect(report).toMatchObject({ verdict: "healthy", findings: [], runtime: { name: "cri-o", reachable: true } });
    expectUntouched(report, beside);
  });

  test("scan cannot tell while crio is down, and ends at once", async () => {
    const node = await crioNode();
    await company(node);
    await node.killRuntime();

    const { code, stdout } = await unghostIn(node, ["scan", "--no-kube", "-o", "json"]);

    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ verdict: "unknown", runtime: { reachable: false } });
  });

  test("heal removes sandboxes that died with a killed crio, and cache files torn meanwhile", async () => {
    const node = await crioNode();
    const beside = await company(node);
    const lost = await runPod(node, { name: "lost", containers });
    const torn = await runPod(node, { name: "torn", containers });
    const half = await runPod(node, { name: "half", containers });
    await killedMonitors(node, [lost, torn, half]);
    const { path = "" } = await emptyResultCache(node, torn);
    await halfWrittenResultCache(node, half);
    await node.startRuntime();

    const report = await scan(node, AT_ONCE);
    const dead = [lost, torn, half].map(({ sandboxId }) => `dead-after-crash/${sandboxId}`);
    expect(named(report)).toEqual(dead.toSorted());
    expectUntouched(report, beside);

    await healAll(node);
    expect(isQuarantined(node, path)).toBe(true);
    await expectReleased(node, lost, torn, half);
    await expectAlive(node, beside);
  });

  test("a stop that passes in spite of a failed DEL leaks an address, which is found and released", async () => {
    const node = await crioNode();
    const beside = await company(node);
    const pod = await runPod(node, { name: "leaving", containers });
    await refusingDel(node, pod);
    const refused = await node.cri.stopPodSandbox(pod.sandboxId, CALL).then(
      () => "",
      ({ text }: { readonly text: string }) => text,
    );
    expect(refused).toContain("network teardown failed for pod sandbox");
    await node.cri.stopPodSandbox(pod.sandboxId, CALL);
    await node.cri.removePodSandbox(pod.sandboxId, CALL);
    await acceptDel(node, pod);

    const report = await scan(node, AT_ONCE);
    expect(report.findings.map(({ class: id }) => id)).toEqual(["hostlocal-ip-leak-after-reboot"]);
    await healAll(node, AT_ONCE);
    await expectReleased(node, pod);
    await expectAlive(node, beside);
  });

  test("a sandbox whose DEL fails is stopped before it is removed, and not left half removed", async () => {
    const node = await crioNode();
    const lost = await runPod(node, { name: "lost", containers });
    await refusingDel(node, lost);
    await killedMonitors(node, [lost]);
    await node.startRuntime();

    await healAll(node, AT_ONCE);
    await acceptDel(node, lost);

    await healAll(node, AT_ONCE);
    await expectReleased(node, lost);
  });

  test("a removal without a stop is half done, and CRI-O's answer is explained", async () => {
    const node = await crioNode();
    const pod = await runPod(node, { name: "half", containers });
    await refusingDel(node, pod);
    const remove = () =>
      node.cri.removePodSandbox(pod.sandboxId, CALL).then(
        () => "",
        ({ text }: { readonly text: string }) => text,
      );

    await remove();
    expect(await explain(node, await remove())).toContain("crio-half-removed");
  });

  test("after a power cut CRI-O removes everything by itself, and nothing is left over", async () => {
    const node = await crioNode();
    const { ready, kept } = await company(node);
    await node.powerCut();

    await node.powerOn();

    expect(await listedIds(node)).toEqual([]);
    await healAll(node, AT_ONCE);
    await expectReleased(node, ...ready.filter(({ ref }) => ref.name !== "again"), ...kept.slice(1));
  });
});
