import { expect, test } from "vitest";
import { EVERY_POD, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { waitForNetwork } from "../../lab/cni-network.ts";
import { ensureCniProgram } from "../../lab/cni-programs.ts";
import { DELEGATE } from "../../lab/delegate-daemon.ts";
import {
  installKubeOvn,
  KUBE_OVN,
  limitKubeOvnCpu,
  loadKubeOvnDaemon,
  setKubeOvnConf,
} from "../../lab/kube-ovn/network.ts";
import { limitMultusCpu, useThickMultus } from "../../lab/multus-thick.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { apiKnows } from "../../lab/stub-api.ts";
import { ensureContainerd } from "../../lab/tools.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { guardThickDelegates, installGuard } from "../e2e/guarded-node.ts";
import { CALL, start } from "../lab/real-node.ts";

await ensureContainerd("2.1");
const kubeOvn = await ensureCniProgram("kube-ovn");
const why = typeof kubeOvn === "string" ? "" : `: skipped, ${kubeOvn.reason}`;

const DEAD = 40;
const NEW = 20;
/** Kubelet's own, for RunPodSandbox. */
const ADD_MS = 240_000;

/** kube-ovn's daemon has a tenth of a CPU, and its DELs are expensive: one after the other they take longer than kubelet waits. */
const SLOW = { delFails: true, delCpuMs: 800, addCpuMs: 20 } as const;

async function kubeOvnStorm(isGuarded: boolean) {
  const node = await start({ runtime: "2.1" });
  // Without multus, which strips the configuration so that no DEL would reach the daemon.
  await installKubeOvn(node);
  await setKubeOvnConf(node);
  await waitForNetwork(node, KUBE_OVN);
  if (isGuarded) await installGuard(node);
  const dead = await runAll(node, "dead", DEAD, CALL.timeoutMs);
  await loadKubeOvnDaemon(node, SLOW);
  await limitKubeOvnCpu(node, 100);
  return await storm(node, dead, DEAD);
}

/** DELs of 40 pods that fail and are retried, beside 20 new pods, below a multus daemon with a tenth of a CPU. */
async function thickStorm(isGuarded: boolean) {
  const node = await start({ runtime: "2.1" });
  await useThickMultus(node);
  if (isGuarded) {
    await installGuard(node);
    await guardThickDelegates(node);
  }
  const dead = await runAll(node, "dead", DEAD, CALL.timeoutMs);
  await orderAtGate(node, "DEL", EVERY_POD, refusal("boom"), DELEGATE);
  await limitMultusCpu(node, 100);
  return await storm(node, dead);
}

async function storm(node: LabNode, dead: Awaited<ReturnType<typeof runAll>>, atOnce = 1) {
  const over = new AbortController();
  const retries = dead.map(async ({ id }) => {
    let calls = 0;
    while (!over.signal.aborted) {
      calls++;
      if (id === undefined || (await stop(node, id))) break;
    }
    return calls;
  });
  await until(`${atOnce} DELs are under way`, CALL.timeoutMs, () => delsUnderWay(node).size >= atOnce || undefined);
  const startedAt = performance.now();
  const added = await runAll(node, "new", NEW, ADD_MS);
  over.abort();
  const calls = await Promise.all(retries);
  const times = added.map(({ ms }) => ms).toSorted((one, other) => one - other);
  return {
    failed: added.filter(({ id }) => id === undefined).length,
    medianMs: Math.round(times[NEW / 2] ?? 0),
    allMs: Math.round(performance.now() - startedAt),
    dels: calls.reduce((sum, one) => sum + one, 0),
    slowestMs: Math.round(times.at(-1) ?? 0),
  };
}

/** Containers with a process that works on their DEL, or waits for its turn. */
function delsUnderWay(node: LabNode): ReadonlySet<string> {
  const dels = processesOf(node).filter(({ environment }) => environment.get("CNI_COMMAND") === "DEL");
  return new Set(dels.map(({ environment }) => environment.get("CNI_CONTAINERID") ?? ""));
}

async function runAll(node: LabNode, prefix: string, count: number, timeoutMs: number) {
  const names = Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  for (const name of names) await apiKnows(node, podRef({ name, uid: name }));
  return await Promise.all(
    names.map(async (name) => {
      const spec = { name, uid: name };
      const startedAt = performance.now();
      const id = await node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), { timeoutMs }).catch(refused);
      return { id, ms: performance.now() - startedAt };
    }),
  );
}

async function stop(node: LabNode, id: string): Promise<boolean> {
  return await node.cri.stopPodSandbox(id, { timeoutMs: 120_000 }).then(
    () => true,
    (error: unknown) => refused(error) !== undefined,
  );
}

function refused(error: unknown): undefined {
  if (!(error instanceof RuntimeError)) throw error;
}

test("40 failing DELs beside 20 new pods, with a tenth of a CPU", async () => {
  const guarded = await thickStorm(true);
  const plain = await thickStorm(false);

  console.log(JSON.stringify({ guarded, plain }));
  expect(guarded.failed).toBe(0);
});

test.skipIf(why !== "")(
  `40 expensive DELs that fail beside 20 new pods, with a tenth of a CPU for kube-ovn's daemon${why}`,
  async () => {
    const guarded = await kubeOvnStorm(true);
    const plain = await kubeOvnStorm(false);

    console.log(JSON.stringify({ guarded, plain }));
    expect(guarded.failed).toBe(0);
    expect(plain.failed).toBeGreaterThan(0);
  },
);
