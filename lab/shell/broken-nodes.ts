import { type CniConflist } from "../cni-config.ts";
import { clockStep } from "../faults/clock-step.ts";
import { leakedLease } from "../faults/host-local.ts";
import { hungAdd } from "../faults/hung-plugin.ts";
import { killedMonitors } from "../faults/killed-monitors.ts";
import { leakedNetns } from "../faults/leaked-netns.ts";
import { chainedNetwork, missingNetwork, missingPlugin } from "../faults/missing-plugin.ts";
import { runMultusPod } from "../faults/multus.ts";
import { orphanedCache } from "../faults/orphaned-cache.ts";
import { failedRollback, refusingDel } from "../faults/refusing-plugin.ts";
import { emptyResultCache } from "../faults/result-cache.ts";
import { strayContainer } from "../faults/stray-container.ts";
import { hangDelegateDaemon, hungCreations } from "../faults/thick-multus.ts";
import { useMultus } from "../multus.ts";
import { useThickMultus } from "../multus-thick.ts";
import type { LabNode } from "../node.ts";
import { type LabPod, runPod, runPods } from "../pods.ts";
import { CONTAINERD_VERSIONS, type RuntimeVersion } from "../runtimes.ts";
import { startStubApi } from "../stub-api.ts";

/** One way to break a node, for training and bug reports. */
export interface BrokenNode {
  /** What is wrong with it, in one line of the list. */
  readonly what: string;
  /** The runtimes that can show it; all by default. */
  readonly runtimes?: readonly RuntimeVersion[];
  readonly cni?: CniConflist;
  /** Breaks the node and returns one sentence for each fault. */
  inject(node: LabNode, pods: number): Promise<readonly string[]>;
  /** Commands worth trying, in this order. */
  readonly next: readonly string[];
}

const CALL = { timeoutMs: 60_000 };
const KUBELET_WAITS_MS = 240_000;
const AT_ONCE = "--no-kube --min-age 0s";
const SCAN = `unghost scan ${AT_ONCE}`;
const HEAL = `unghost heal ${AT_ONCE}`;
const NO_GRACE = "--inflight-grace 0s";
const NEXT = [SCAN, `${HEAL} --dry-run`, HEAL, "unghost history"];
const NEXT_IN_FLIGHT = [`${SCAN} ${NO_GRACE}`, `${HEAL} ${NO_GRACE}`, "unghost history"];

export const BROKEN_NODES: Readonly<Record<string, BrokenNode>> = {
  "power-cut": {
    what: "The power was cut under running pods: their sandboxes are dead and keep their names",
    runtimes: CONTAINERD_VERSIONS,
    inject: async (node, count) => {
      await running(node, count);
      await reboot(node);
      return [`ran ${count} pods, cut the power, booted`];
    },
    next: NEXT,
  },
  "torn-caches": {
    what: "A power cut that also emptied half of the CNI result files: containerd 1.6 cannot stop those sandboxes",
    runtimes: CONTAINERD_VERSIONS,
    inject: async (node, count) => {
      const pods = await running(node, count);
      await node.powerCut();
      const torn = pods.filter((_, index) => index % 2 === 0);
      const did = await Promise.all(torn.map((pod) => emptyResultCache(node, pod)));
      await node.powerOn();
      return [`ran ${count} pods, cut the power, booted`, ...did.map((one) => one.did)];
    },
    next: NEXT,
  },
  "multus-deadlock": {
    what: "A power cut under pods on thin multus 4.3.0, which drops fields of its delegates on DEL: no sandbox can be stopped",
    runtimes: CONTAINERD_VERSIONS,
    inject: async (node, count) => {
      await useMultus(node);
      const pods: LabPod[] = [];
      for (let index = 0; index < count; index += 1) {
        pods.push(await runMultusPod(node, { name: `pod-${index}`, containers: [{ name: "main" }] }));
      }
      await reboot(node);
      await startStubApi(node);
      const refused = await Promise.all(pods.map((pod) => stopFails(node, pod)));
      return [
        `ran ${count} pods on multus, cut the power, booted`,
        `tried to stop each of them: ${refused.filter(Boolean).length} of ${count} failed`,
      ];
    },
    next: NEXT,
  },
  "hung-creations": {
    what: "The daemon of a thick multus delegate hangs: every ADD waits for it, and no new pod starts",
    runtimes: CONTAINERD_VERSIONS,
    inject: async (node, count) => {
      await useThickMultus(node);
      await hangDelegateDaemon(node);
      return [(await hungCreations(node, count, KUBELET_WAITS_MS)).did];
    },
    next: NEXT_IN_FLIGHT,
  },
  "held-name": {
    what: "A creation hangs in a network plugin and holds the pod's name, while the runtime lists nothing",
    inject: async (node, count) => {
      await running(node, count);
      const { did, reservedName } = await hungAdd(node, { name: "stuck" });
      return [did, `the runtime holds the name ${reservedName}`];
    },
    next: NEXT_IN_FLIGHT,
  },
  "failing-del": {
    what: "The network plugin fails every DEL of some pods: they cannot be stopped",
    runtimes: CONTAINERD_VERSIONS,
    inject: async (node, count) => {
      const pods = await running(node, count);
      const did: string[] = [];
      for (const pod of pods) did.push((await refusingDel(node, pod)).did);
      await Promise.all(pods.map((pod) => stopFails(node, pod)));
      return did;
    },
    next: NEXT,
  },
  "half-made": {
    what: "ADD failed and so did its roll-back: containerd 1.6 keeps the sandboxes, created in the year 1",
    runtimes: ["1.6"],
    inject: async (node, count) => {
      const did = [];
      for (let index = 0; index < count; index += 1) did.push(await failedRollback(node, { name: `half-${index}` }));
      return did.flatMap((one) => (one === undefined ? [] : [one.did]));
    },
    next: NEXT,
  },
  "killed-monitors": {
    what: "CRI-O and the monitors of its containers were killed: it lists dead sandboxes and knows no exit code",
    runtimes: ["crio"],
    inject: async (node, count) => {
      const { did } = await killedMonitors(node, await running(node, count));
      await node.startRuntime();
      return [did, "started crio again"];
    },
    next: NEXT,
  },
  "clock-step": {
    what: "The clock stood near 1970 when pods were restarted: kubelet goes by creation times and asks for an attempt that is taken",
    runtimes: CONTAINERD_VERSIONS,
    inject: async (node, count) => {
      const restarted: LabPod[] = [];
      for (let index = 0; index < count; index += 1) {
        const spec = { name: `pod-${index}`, uid: crypto.randomUUID() };
        const run = (attempt: number) => runPod(node, { ...spec, attempt, containers: [{ name: "main", attempt }] });
        await node.cri.stopPodSandbox((await run(0)).sandboxId, CALL);
        restarted.push(await run(1));
      }
      await reboot(node);
      const did: string[] = [];
      // The restart got the next attempt, and a creation time long before that of the first.
      for (const pod of restarted) did.push((await clockStep(node, pod)).did);
      return did;
    },
    next: NEXT,
  },
  "leaked-addresses": {
    what: "Addresses of sandboxes that do not exist any more are still taken",
    inject: async (node, count) => {
      const leaks = Array.from({ length: count }, (_, index) => leakedLease(node, `10.88.0.${200 - index}`));
      return (await Promise.all(leaks)).map(({ did }) => did);
    },
    next: NEXT,
  },
  "missing-plugin": {
    what: "A CNI plugin was uninstalled while pods need it for their DEL",
    cni: chainedNetwork(),
    inject: async (node, count) => {
      const pods = await running(node, count);
      const { did } = await missingPlugin(node);
      await Promise.all(pods.map((pod) => stopFails(node, pod)));
      return [did];
    },
    next: NEXT,
  },
  "missing-network": {
    what: "No network is configured: no pod starts, and on containerd none can be stopped",
    runtimes: CONTAINERD_VERSIONS,
    inject: async (node, count) => {
      await running(node, count);
      return [(await missingNetwork(node)).did];
    },
    next: NEXT,
  },
  "stray-container": {
    what: "A crash lost the record of a sandbox and left that of its container: old kubelets end because of it",
    runtimes: CONTAINERD_VERSIONS,
    inject: async (node) => [(await strayContainer(node)).did],
    next: [...NEXT, "unghost explain kubelet-blocked-by-orphan-container"],
  },
  leftovers: {
    what: "Cache files and network namespaces of sandboxes that do not exist any more",
    runtimes: CONTAINERD_VERSIONS,
    inject: async (node, count) => {
      const files = Array.from({ length: count }, () => orphanedCache(node));
      return [...(await Promise.all(files)), await leakedNetns(node)].map(({ did }) => did);
    },
    next: [`${SCAN} ${NO_GRACE}`, `${HEAL} ${NO_GRACE}`, "unghost undo --help"],
  },
};

function running(node: LabNode, count: number): Promise<readonly LabPod[]> {
  return runPods(node, count, { containers: [{ name: "main" }] });
}

async function reboot(node: LabNode): Promise<void> {
  await node.powerCut();
  await node.powerOn();
}

async function stopFails(node: LabNode, pod: LabPod): Promise<boolean> {
  return await node.cri.stopPodSandbox(pod.sandboxId, CALL).then(
    () => false,
    () => true,
  );
}
