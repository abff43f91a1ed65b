import { readFileSync } from "node:fs";
import type { PodRef } from "../../src/node/types/ids.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { delegateRequests, restartDelegateDaemon, setDelegateMood } from "../delegate-daemon.ts";
import { MULTUS_CONF_FILE } from "../multus.ts";
import { multusDaemonPid } from "../multus-thick.ts";
import type { LabNode } from "../node.ts";
import { processesOf } from "../node-processes.ts";
import { podRef, sandboxConfig } from "../pods.ts";
import { until } from "../poll.ts";
import { apiKnows } from "../stub-api.ts";
import type { Injected } from "./injected.ts";

const FIND_MS = 120_000;

/** Pods whose creation hangs in multus. All of these faults need useThickMultus() on the node first. */
export interface HungCreations extends Injected {
  readonly refs: readonly PodRef[];
  /** Settles when each call was answered or timed out. */
  readonly answered: Promise<void>;
}

/**
 * The delegate's daemon accepts and never answers: every ADD and DEL hangs in it, and the shims wait for the delegates.
 */
export async function hangDelegateDaemon(node: LabNode): Promise<Injected> {
  await setDelegateMood(node, "hang");
  return { fault: "delegate-daemon-hangs", did: "made the delegate's daemon accept requests and never answer" };
}

/** SIGSTOP: the kernel still accepts connections to its socket, and nothing answers. */
export async function wedgeMultusDaemon(node: LabNode): Promise<Injected> {
  const pid = multusDaemonPid(node);
  await node.kill(pid, "STOP");
  return { fault: "multus-daemon-wedged", did: `stopped the multus daemon (pid ${pid})`, pid };
}

export async function unwedgeMultusDaemon(node: LabNode): Promise<void> {
  await node.kill(multusDaemonPid(node), "CONT");
}

/**
 * Requests pods from the runtime and waits until a plugin process works on each. The delegate or the daemon must hang
 * already. The caller times out after `giveUpMs`, like kubelet; the runtime does not.
 */
export async function hungCreations(node: LabNode, count: number, giveUpMs: number): Promise<HungCreations> {
  const specs = Array.from({ length: count }, (_, index) => ({ name: `hung-${index}` }));
  const refs = specs.map((spec) => podRef(spec));
  for (const ref of refs) await apiKnows(node, ref);
  const calls = refs.map(async (ref) => {
    try {
      await node.cri.runPodSandbox(sandboxConfig(ref, ref), { timeoutMs: giveUpMs });
    } catch (error) {
      if (!(error instanceof RuntimeError)) throw error;
    }
  });
  const answered = Promise.all(calls).then(() => undefined);
  await until(`${count} creations hang in multus`, FIND_MS, () => addsUnderWay(node).size >= count || undefined);
  return { fault: "hung-creations", did: `asked for ${count} pods whose ADD hangs in multus`, refs, answered };
}

/**
 * containerd is killed while pods are being created, the delegate's daemon recovers, and containerd starts again:
 * multus has rolled back each ADD by then and deleted its cache, and containerd's sandboxes are incomplete.
 */
export async function killRuntimeMidAdd(node: LabNode, count: number): Promise<HungCreations> {
  await hangDelegateDaemon(node);
  const before = delegateRequests(node).length;
  const hung = await hungCreations(node, count, FIND_MS);
  const haveAsked = (): true | undefined => delegateRequests(node).length >= before + count || undefined;
  await until(`${count} delegates wait for their daemon`, FIND_MS, haveAsked);
  await node.killRuntime();
  await hung.answered;
  await restartDelegateDaemon(node);
  // Including the DELs of multus' rollback: a sandbox that a plugin works on counts as in-flight.
  const isQuiet = (): true | undefined =>
    !processesOf(node).some(({ environment }) => environment.has("CNI_COMMAND")) || undefined;
  await until("no plugin process runs", FIND_MS, isQuiet);
  await node.startRuntime();
  return { ...hung, fault: "killed-mid-add", did: `killed containerd with ${count} pods in the making` };
}

/** Rewrites the same bytes, like every restart of multus, cilium or kube-ovn. */
export async function rewriteNetworkConf(node: LabNode): Promise<Injected> {
  await node.writeFile(MULTUS_CONF_FILE, readFileSync(node.path(MULTUS_CONF_FILE)));
  const did = `wrote ${MULTUS_CONF_FILE} again with the same bytes`;
  return { fault: "network-configuration-rewritten", did, path: MULTUS_CONF_FILE };
}

/** Sandbox id -> a process that works on its ADD; the shim and the delegate of one sandbox count once. */
export function addsUnderWay(node: LabNode): ReadonlyMap<string, number> {
  return new Map(
    processesOf(node)
      .filter(({ environment }) => environment.get("CNI_COMMAND") === "ADD")
      .map(({ pid, environment }) => [environment.get("CNI_CONTAINERID") ?? "", pid]),
  );
}
