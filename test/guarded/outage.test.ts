import { expect, test } from "vitest";
import { ensureCniProgram } from "../../lab/cni-programs.ts";
import { KUBE_OVN_NETWORK } from "../../lab/kube-ovn/load.ts";
import { startKubeOvnDaemon, stopKubeOvnDaemon, useKubeOvn } from "../../lab/kube-ovn/network.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { apiKnows } from "../../lab/stub-api.ts";
import { ensureContainerd } from "../../lab/tools.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { addresses, guardDelegates, installGuard, queued, untilQueueIsEmpty } from "../e2e/guarded-node.ts";
import { CALL, start } from "../lab/real-node.ts";

const PODS = Array.from({ length: 24 }, (_, index) => `web-${index}`);
const ATTEMPTS = 3;

/** What the report asks for. */
const RUN_MS = 15_000;
const EMPTY_MS = 30_000;

for (const version of ["2.1", "2.4"] as const) await ensureContainerd(version);
const kubeOvn = await ensureCniProgram("kube-ovn");
const why = typeof kubeOvn === "string" ? "" : `: skipped, ${kubeOvn.reason}`;

/** What a kubelet does with each pod while the network add-on's daemon is down. */
async function attempt(node: LabNode, name: string, number: number): Promise<"runs" | "failed"> {
  const spec = { name, uid: name, attempt: number };
  try {
    await node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), CALL);
    return "runs";
  } catch (error) {
    if (error instanceof RuntimeError) return "failed";
    throw error;
  }
}

test.skipIf(why !== "").each(["1.6", "2.1", "2.3", "2.4"] as const)(
  `kube-ovn's daemon is down below multus, then back (containerd %s)${why}`,
  async (runtime) => {
    const node = await start({ runtime });
    await useKubeOvn(node);
    await installGuard(node);
    await guardDelegates(node);
    for (const name of PODS) await apiKnows(node, podRef({ name, uid: name }));
    await stopKubeOvnDaemon(node);

    for (let number = 0; number < ATTEMPTS; number++) {
      const ends = await Promise.all(PODS.map((name) => attempt(node, name, number)));
      expect(new Set(ends)).toEqual(new Set(["failed"]));
    }
    // No name is held, and nothing is left to remove.
    expect(await node.cri.listPodSandbox({}, CALL)).toEqual([]);
    console.log(`queued ${queued(node).length}`);

    await startKubeOvnDaemon(node);
    const backAt = performance.now();
    expect(new Set(await Promise.all(PODS.map((name) => attempt(node, name, 0))))).toEqual(new Set(["runs"]));
    const runAfter = performance.now() - backAt;
    await untilQueueIsEmpty(node);
    const emptyAfter = performance.now() - backAt;
    console.log(`all run after ${Math.round(runAfter)} ms, queue empty after ${Math.round(emptyAfter)} ms`);
    expect([runAfter < RUN_MS, emptyAfter < EMPTY_MS]).toEqual([true, true]);
    expect(addresses(node, KUBE_OVN_NETWORK)).toHaveLength(PODS.length);
  },
);
