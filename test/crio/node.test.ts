import { describe, expect, test } from "vitest";
import { hungAdd } from "../../lab/faults/hung-plugin.ts";
import { killedMonitors } from "../../lab/faults/killed-monitors.ts";
import { acceptDel, refusingDel } from "../../lab/faults/refusing-plugin.ts";
import { emptyResultCache, halfWrittenResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPod, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { expectAlive, healAll, isQuarantined, listedIds, unghostIn } from "../e2e/healed-node.ts";
import { AT_ONCE, company, expectUntouched, named, scan } from "../e2e/scanned-node.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE } from "../lab/real-node.ts";
import { crioLog, crioNode, expectNothingLeft, expectReleased, NO_WIPE } from "./crio-node.ts";

const containers = [{ name: "main" }] as const;
/** The storage of CRI-O's containers. */
const LIST_STORAGE = ["sh", "-c", "ls /var/lib/containers/storage/*-containers"];
const WIPE = ["crio", "--config", "/etc/crio/crio.conf", "wipe"];

async function explain(node: LabNode, text: string): Promise<readonly string[]> {
  const { stdout } = await unghostIn(node, ["explain", "-o", "json", text]);
  const answer: { readonly matches: readonly { readonly class: string }[] } = JSON.parse(stdout);
  return answer.matches.map(({ class: id }) => id);
}

describe.skipIf(NO_REAL_NODE !== undefined)("on a real CRI-O", { timeout: HANG_GUARD_MS }, () => {
  test("scan reports running and finished pods as healthy", async () => {
    const node = await crioNode();
    const beside = await company(node);

    const report = await scan(node, AT_ONCE);

    expect(report).toMatchObject({ verdict: "healthy", findings: [], runtime: { name: "cri-o", reachable: true } });
    expectUntouched(report, beside);
  });

  test("scan reports unknown while crio is down, and ends at once", async () => {
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

  test("heal ends the plugin of a hung creation that holds the pod's name, explain knows the messages, and the pod starts", async () => {
    const node = await crioNode();
    const beside = await company(node);
    const hung = await hungAdd(node, { name: "stuck", uid: "stuck" });
    // Kubelet's next attempt: CRI-O makes it wait for the first one, and does not wake it when that fails.
    const retry = () => node.cri.runPodSandbox(sandboxConfig(hung.ref, hung.ref), { timeoutMs: 3000 });
    await expect(retry()).rejects.toThrow();
    const lines = await until("CRI-O logs that the name is reserved", HANG_GUARD_MS, () => {
      const about = crioLog(node)
        .split("\n")
        .filter((line) => line.includes(hung.ref.name));
      const reserved = about.find((line) => line.includes("name is reserved"));
      const stage = about.find((line) => line.includes("not yet finished"));
      return reserved !== undefined && stage !== undefined ? [reserved, stage] : undefined;
    });
    for (const line of lines) expect(await explain(node, line)).toContain("crio-name-reserved");

    const report = await scan(node, AT_ONCE);
    expect(named(report)).toEqual([`sandbox-name-held-by-inflight-run/${hung.sandboxId}`]);
    await healAll(node, AT_ONCE);

    const id = await until("the pod starts", HANG_GUARD_MS, () => retry().catch(() => undefined));
    expect(await listedIds(node)).toContain(id);
    await expectAlive(node, beside);
  });

  test("heal releases an address that leaked in a stop with a failed DEL", async () => {
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

  test("heal stops a sandbox whose DEL fails before it removes it, and does not leave it half removed", async () => {
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

  test("explain knows CRI-O's answer after a removal without a stop", async () => {
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

  test.each([
    ["removes everything on its own", ""],
    ["leaves it to crio wipe", NO_WIPE],
  ])("after a power cut of a CRI-O that %s, scan and boot wait for that and nothing is left", async (_what, config) => {
    const node = await crioNode(config);
    const { ready, kept } = await company(node);
    await node.powerCut();
    await node.powerOn({ runtime: false });
    const stored = await node.check(LIST_STORAGE);

    expect((await unghostIn(node, ["scan", "--no-kube"])).code).toBe(2);
    expect((await unghostIn(node, ["boot", "--no-kube"])).code).toBe(0);
    expect(await node.check(LIST_STORAGE)).toBe(stored);
    if (config !== "") await node.check(WIPE);
    await node.startRuntime();

    expect(await listedIds(node)).toEqual([]);
    await healAll(node, AT_ONCE);
    expect(await scan(node, AT_ONCE)).toMatchObject({ verdict: "healthy", findings: [], kept: [] });
    const gone = [...ready, ...kept];
    await expectNothingLeft(node, ...gone);
    // After an unclean shutdown crio wipe also removes the images.
    if (config === "") await expectReleased(node, ...gone.filter(({ ref }) => ref.name !== "again"));
  });

  test("after a power cut without crio wipe, scan keeps what CRI-O still lists, and a late crio wipe removes nothing", async () => {
    const node = await crioNode(NO_WIPE);
    const { kept } = await company(node);
    await node.powerCut();
    await node.powerOn();
    const finished = kept.map(({ sandboxId }) => sandboxId).toSorted();
    const keptNow = async () => (await scan(node, AT_ONCE)).kept.map(({ sandboxId }) => sandboxId).toSorted();
    expect(await listedIds(node)).toEqual(finished);
    expect(await keptNow()).toEqual(finished);

    await node.stopRuntime();
    await node.check(WIPE);
    await node.startRuntime();
    expect(await listedIds(node)).toEqual(finished);
    await healAll(node, AT_ONCE);
    expect(await keptNow()).toEqual(finished);
  });
});
