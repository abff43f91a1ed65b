import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CNI_BIN_DIR } from "../../lab/cni-config.ts";
import { EVERY_POD, liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { ensureCniProgram } from "../../lab/cni-programs.ts";
import { emptyMultusCache, runMultusPod } from "../../lab/faults/multus.ts";
import { KUBE_OVN_NETWORK } from "../../lab/kube-ovn/load.ts";
import { KUBE_OVN, startKubeOvnDaemon, stopKubeOvnDaemon, useKubeOvn } from "../../lab/kube-ovn/network.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { apiKnows, startStubApi } from "../../lab/stub-api.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { addresses, guardDelegates, installGuard, keepLater } from "../e2e/guarded-node.ts";
import { CALL, start } from "../lab/real-node.ts";

const kubeOvn = await ensureCniProgram("kube-ovn");
const patched = await ensureCniProgram("patched-multus");
const reasons = [kubeOvn, patched].flatMap((one) => (typeof one === "string" ? [] : [one.reason]));
const why = reasons.length === 0 ? "" : `: skipped, ${reasons.join(", ")}`;
const patchedMultus = typeof patched === "string" ? join(patched, "multus") : "";

const PODS = ["a", "b", "c", "d"];
const ATTEMPTS = 3;
const FAILED = PODS.length * ATTEMPTS;
/** Kubelet's calls for a deleted pod: more than the guard passes on. */
const REMOVALS = 8;

type Remedy = "none" | "patched multus" | "guard";

async function nodeWith(remedy: Remedy, runtime: "1.6" | "2.3"): Promise<LabNode> {
  const node = await start({ runtime });
  await useKubeOvn(node);
  if (remedy === "patched multus") {
    const link = node.path(`${CNI_BIN_DIR}/multus`);
    await rm(link);
    await symlink(patchedMultus, link);
  }
  if (remedy === "guard") {
    await installGuard(node);
    await guardDelegates(node);
  }
  return node;
}

async function succeeds(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (error instanceof RuntimeError) return false;
    throw error;
  }
}

async function addAll(node: LabNode, attempt: number): Promise<number> {
  const ends = await Promise.all(
    PODS.map(async (name) => {
      const spec = { name, uid: name, attempt };
      await apiKnows(node, podRef(spec));
      return await succeeds(node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), CALL));
    }),
  );
  return ends.filter(Boolean).length;
}

async function removeAll(node: LabNode): Promise<void> {
  for (let times = 0; times < REMOVALS; times++) {
    for (const { id } of await node.cri.listPodSandbox({}, CALL))
      if (await succeeds(node.cri.stopPodSandbox(id, CALL))) await succeeds(node.cri.removePodSandbox(id, CALL));
  }
}

/** What is left when the fault is over, kubelet has done what it can, and the guard's queue has run. */
async function leftOf(node: LabNode, remedy: Remedy): Promise<{ readonly held: number; readonly leaked: number }> {
  if (remedy === "guard") await keepLater(node);
  const held = (await node.cri.listPodSandbox({}, CALL)).length;
  return { held, leaked: addresses(node, KUBE_OVN_NETWORK).length };
}

/** kube-ovn has given an address, then the ADD fails, and so does its roll-back; three attempts each. */
async function addFailsLate(node: LabNode): Promise<void> {
  await orderAtGate(node, "ADD", EVERY_POD, `"$0.real" >/dev/null; ${refusal("a later part failed")}`, KUBE_OVN);
  await orderAtGate(node, "DEL", EVERY_POD, refusal("dial unix /x: connect: connection refused"), KUBE_OVN);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) expect(await addAll(node, attempt)).toBe(0);
  await liftOrder(node, "ADD", EVERY_POD);
  await liftOrder(node, "DEL", EVERY_POD);
  await removeAll(node);
}

/** The daemon is down: no ADD gets as far as an address. */
async function daemonDown(node: LabNode): Promise<void> {
  await stopKubeOvnDaemon(node);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) expect(await addAll(node, attempt)).toBe(0);
  await startKubeOvnDaemon(node);
  await removeAll(node);
}

/** Pods that ran are deleted while the daemon is down, and then it is back. */
async function deletedMeanwhile(node: LabNode): Promise<void> {
  expect(await addAll(node, 0)).toBe(PODS.length);
  await stopKubeOvnDaemon(node);
  for (const { id } of await node.cri.listPodSandbox({}, CALL)) await succeeds(node.cri.stopPodSandbox(id, CALL));
  await startKubeOvnDaemon(node);
  await removeAll(node);
}

/** A power cut empties multus' caches. */
async function cachesLost(node: LabNode): Promise<void> {
  const pods = [];
  for (const name of PODS) pods.push(await runMultusPod(node, { name }));
  await node.powerCut();
  for (const pod of pods) await emptyMultusCache(node, pod);
  await node.powerOn();
  await startStubApi(node);
  await startKubeOvnDaemon(node);
  await removeAll(node);
  // The first pod of a boot makes the directory: before, a missing namespace proves nothing.
  await node.check(["mkdir", "-p", "/run/netns"]);
}

/** The table of docs/guard.md: sandboxes that hold their names, and addresses that stay in use. */
const ROWS = [
  { fault: addFailsLate, remedy: "none", "1.6": [FAILED, FAILED], "2.3": [0, FAILED] },
  { fault: addFailsLate, remedy: "patched multus", "1.6": [0, FAILED], "2.3": [0, FAILED] },
  { fault: addFailsLate, remedy: "guard", "1.6": [0, 0], "2.3": [0, 0] },
  { fault: daemonDown, remedy: "none", "1.6": [FAILED, 0], "2.3": [0, 0] },
  { fault: daemonDown, remedy: "patched multus", "1.6": [0, 0], "2.3": [0, 0] },
  { fault: daemonDown, remedy: "guard", "1.6": [0, 0], "2.3": [0, 0] },
  { fault: deletedMeanwhile, remedy: "none", "1.6": [4, 4], "2.3": [4, 4] },
  { fault: deletedMeanwhile, remedy: "patched multus", "1.6": [0, 4], "2.3": [0, 4] },
  { fault: deletedMeanwhile, remedy: "guard", "1.6": [0, 0], "2.3": [0, 0] },
  { fault: cachesLost, remedy: "none", "1.6": [0, 4], "2.3": [0, 4] },
  { fault: cachesLost, remedy: "patched multus", "1.6": [0, 4], "2.3": [0, 4] },
  { fault: cachesLost, remedy: "guard", "1.6": [0, 0], "2.3": [0, 0] },
] as const;

const CASES = ROWS.flatMap(({ fault, remedy, ...expected }) =>
  (["1.6", "2.3"] as const).map((runtime) => ({
    fault,
    name: fault.name,
    remedy,
    runtime,
    expected: expected[runtime],
  })),
);

test.skipIf(why !== "").each(CASES)(
  `names held and addresses leaked after $name with $remedy (containerd $runtime)${why}`,
  async ({ fault, remedy, runtime, expected: [held, leaked] }) => {
    const node = await nodeWith(remedy, runtime);
    await fault(node);
    expect(await leftOf(node, remedy)).toEqual({ held, leaked });
  },
);
