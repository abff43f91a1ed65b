import { describe, expect, test } from "vitest";
import { KUBE_OVN_NETWORK } from "../../lab/kube-ovn/load.ts";
import { installKubeOvn, setKubeOvnConf, startKubeOvnDaemon, stopKubeOvnDaemon } from "../../lab/kube-ovn/network.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { addresses, guardStatus, installGuard, queued, untilQueueIsEmpty } from "../e2e/guarded-node.ts";
import { unghostIn } from "../e2e/healed-node.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE } from "../lab/real-node.ts";
import { crioNode } from "./crio-node.ts";

const PODS = ["a", "b", "c", "d"];
const ATTEMPTS = 3;

async function addAll(node: LabNode, attempt: number): Promise<number> {
  const ends = await Promise.all(
    PODS.map(async (name) => {
      const spec = { name, uid: name, attempt };
      try {
        return await node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), CALL);
      } catch (error) {
        if (error instanceof RuntimeError) return undefined;
        throw error;
      }
    }),
  );
  return ends.filter((id) => id !== undefined).length;
}

describe.skipIf(NO_REAL_NODE !== undefined)("the CNI guard on a real CRI-O", { timeout: HANG_GUARD_MS }, () => {
  test("an outage of kube-ovn's daemon holds no name and leaks nothing, and uninstall leaves no byte behind", async () => {
    const node = await crioNode();
    await installKubeOvn(node);
    await setKubeOvnConf(node);
    await installGuard(node);
    expect(await guardStatus(node)).toMatchObject({
      code: 0,
      inEffect: true,
      networks: [{ network: KUBE_OVN_NETWORK, plugins: [{ name: "kube-ovn", guarded: true }] }],
    });

    await stopKubeOvnDaemon(node);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) expect(await addAll(node, attempt)).toBe(0);
    expect(await node.cri.listPodSandbox({}, CALL)).toEqual([]);
    expect(queued(node)).toHaveLength(PODS.length * ATTEMPTS);

    await startKubeOvnDaemon(node);
    expect(await addAll(node, 0)).toBe(PODS.length);
    await untilQueueIsEmpty(node);
    expect(addresses(node, KUBE_OVN_NETWORK)).toHaveLength(PODS.length);

    for (const { id } of await node.cri.listPodSandbox({}, CALL)) {
      await node.cri.stopPodSandbox(id, CALL);
      await node.cri.removePodSandbox(id, CALL);
    }
    expect(addresses(node, KUBE_OVN_NETWORK)).toEqual([]);
    expect(await unghostIn(node, ["cni", "uninstall", "--yes"])).toMatchObject({ code: 0 });
    expect(await node.check(["ls", "/etc/crio/crio.conf.d", "/opt/unghost"])).not.toContain("unghost-cni");
  });
});
