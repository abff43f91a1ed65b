import { describe, expect } from "vitest";
import { ensureCniProgram } from "../../lab/cni-programs.ts";
import { emptyMultusCache, runMultusPod } from "../../lab/faults/multus.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import { KUBE_OVN_NETWORK } from "../../lab/kube-ovn/load.ts";
import { startKubeOvnDaemon, stopKubeOvnDaemon, useKubeOvn } from "../../lab/kube-ovn/network.ts";
import { killMultusDaemon, startMultusDaemon, useThickMultus } from "../../lab/multus-thick.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, runPod, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { containerdRelease, type RuntimeVersion } from "../../lab/runtimes.ts";
import { startStubApi } from "../../lab/stub-api.ts";
import { PASSED_ON_SECONDS } from "../../src/guard/decide.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import {
  addresses,
  decisions,
  guardDelegates,
  guardThickDelegates,
  installGuard,
  keepLater,
  queued,
  untilQueueIsEmpty,
} from "../e2e/guarded-node.ts";
import { healAll } from "../e2e/healed-node.ts";
import { CALL, eachRuntime, start } from "../lab/real-node.ts";

const kubeOvn = await ensureCniProgram("kube-ovn");
const why = typeof kubeOvn === "string" ? "" : `: skipped, ${kubeOvn.reason}`;
/** Kubelet's own retries are slower. */
const RETRY_MS = 2000;
const REMOVED_MS = (PASSED_ON_SECONDS + 60) * 1000;

/** Kubelet's calls for a pod that was deleted, until they succeed. */
async function removePod(node: LabNode, { sandboxId }: LabPod): Promise<void> {
  const attempt = async (): Promise<true | undefined> => {
    try {
      await node.cri.stopPodSandbox(sandboxId, CALL);
      await node.cri.removePodSandbox(sandboxId, CALL);
      return true;
    } catch (error) {
      if (error instanceof RuntimeError) return undefined;
      throw error;
    }
  };
  await until(`${sandboxId} is removed`, REMOVED_MS, attempt, RETRY_MS);
}

/** The pod starts again under the same name and attempt, and its address is the only one in use. */
async function expectFree(node: LabNode, pod: LabPod, network: string): Promise<void> {
  expect(await node.cri.listPodSandbox({}, CALL)).toEqual([]);
  await node.cri.runPodSandbox(sandboxConfig(pod.ref, pod.ref), CALL);
  await untilQueueIsEmpty(node);
  expect(addresses(node, network)).toHaveLength(1);
}

async function guardedKubeOvn(runtime: RuntimeVersion): Promise<LabNode> {
  const node = await start({ runtime });
  await useKubeOvn(node);
  await installGuard(node);
  await guardDelegates(node);
  return node;
}

async function reboot(node: LabNode): Promise<void> {
  await node.powerOn();
  await startStubApi(node);
  await startKubeOvnDaemon(node);
}

describe.skipIf(why !== "")(`faults made with the guard in place${why}`, () => {
  eachRuntime("libcni's result is lost in a power cut (B1)", async (runtime) => {
    const node = await start({ runtime });
    await installGuard(node);
    const pod = await runPod(node, { name: "web" });
    await node.powerCut();
    await emptyResultCache(node, pod);
    await node.powerOn();

    if (containerdRelease(runtime).corruptResultBlocks) {
      // Its libcni reads the file before it calls any plugin: nothing in front of the plugins is asked.
      await expect(node.cri.stopPodSandbox(pod.sandboxId, CALL)).rejects.toThrow("unexpected end of JSON input");
      expect(decisions(node)).toEqual([]);
      await healAll(node);
    } else {
      await removePod(node, pod);
    }
    await expectFree(node, pod, "cbr0");
  });

  eachRuntime("multus' cache is lost in a power cut (B2)", async (runtime) => {
    const node = await guardedKubeOvn(runtime);
    const pod = await runMultusPod(node, { name: "web" });
    await node.powerCut();
    await emptyMultusCache(node, pod);
    await reboot(node);

    await removePod(node, pod);
    // multus calls no delegate, and answers success. The pod starts again under its name, with another address.
    expect(await node.cri.listPodSandbox({}, CALL)).toEqual([]);
    await node.cri.runPodSandbox(sandboxConfig(pod.ref, pod.ref), CALL);
    expect(addresses(node, KUBE_OVN_NETWORK)).toHaveLength(2);
    await keepLater(node);
    expect(addresses(node, KUBE_OVN_NETWORK)).toHaveLength(1);
    expect(decisions(node).map(({ code }) => code)).toContain("del-never-came");
    expect(queued(node)).toEqual([]);
  });

  eachRuntime("a first DEL uses up multus' cache (B3)", async (runtime) => {
    const node = await guardedKubeOvn(runtime);
    const pod = await runMultusPod(node, { name: "web" });
    await stopKubeOvnDaemon(node);
    await expect(node.cri.stopPodSandbox(pod.sandboxId, CALL)).rejects.toThrow("server_socket");
    await startKubeOvnDaemon(node);

    await removePod(node, pod);
    expect(decisions(node).map(({ code }) => code)).toContain("done-with-recorded-config");
    await expectFree(node, pod, KUBE_OVN_NETWORK);
  });

  eachRuntime("multus strips the delegate's configuration (B4)", async (runtime) => {
    const node = await guardedKubeOvn(runtime);
    const pod = await runMultusPod(node, { name: "web" });

    await node.cri.stopPodSandbox(pod.sandboxId, CALL);
    await node.cri.removePodSandbox(pod.sandboxId, CALL);

    // The runtime sends every DEL twice.
    expect(decisions(node).map(({ code }) => code)).toEqual(["done-with-recorded-config", "released-before"]);
    await expectFree(node, pod, KUBE_OVN_NETWORK);
  });

  eachRuntime("multus' daemon is gone (B5)", async (runtime) => {
    const node = await start({ runtime });
    await useThickMultus(node);
    await installGuard(node);
    await guardThickDelegates(node);
    const pod = await runMultusPod(node, { name: "web" });
    await killMultusDaemon(node);

    await expect(runMultusPod(node, { name: "new" })).rejects.toThrow();
    await removePod(node, pod);
    expect(await node.cri.listPodSandbox({}, CALL)).toEqual([]);

    // The shim answers success for a DEL that it cannot send.
    await startMultusDaemon(node);
    await node.cri.runPodSandbox(sandboxConfig(pod.ref, pod.ref), CALL);
    await keepLater(node);
    await untilQueueIsEmpty(node);
    expect(addresses(node)).toHaveLength(1);
  });
});
