import { readdirSync } from "node:fs";
import { dirname } from "node:path";
import { findCrictl } from "../crictl.ts";
import { hungAdd } from "../faults/hung-plugin.ts";
import { multusDeadlock } from "../faults/multus.ts";
import { emptyResultCache } from "../faults/result-cache.ts";
import { useMultus } from "../multus.ts";
import { type LabNode, startNode } from "../node.ts";
import { finishedPod, type LabPod, runPod } from "../pods.ts";
import { CONTAINERD_SOCKET } from "../runtime-config.ts";
import { ensureMultus } from "../tools.ts";
import { ownOneLiner } from "./own-one-liner.ts";
import { CAST, isAddress, ONE_LINER, type Stage } from "./stage.ts";
import { unghostProgram } from "./unghost-program.ts";

const COMMAND_MS = 30_000;

export async function realStage(env: Readonly<Record<string, string>>): Promise<Stage> {
  const program = unghostProgram();
  const crictl = findCrictl();
  const node = await startNode({
    visible: [program.command[0], crictl].filter((path) => path !== undefined).map(dirname),
  });

  let pods: Readonly<Record<string, LabPod>> = {};
  const podNamed = (name: string): LabPod => {
    const pod = pods[name];
    if (pod === undefined) throw new Error(`the demo has not created ${name} yet`);
    return pod;
  };

  return {
    description: `a real containerd ${node.runtime} with runc and CNI plugins, in namespaces of its own (${node.hostname})`,
    get cri() {
      return node.cri;
    },
    createPods: async () => {
      pods = await createPods(node);
    },
    powerCutAndBoot: async () => {
      await node.powerCut();
      await node.powerOn({ runtime: false });
    },
    oneLiner: async () => {
      if (crictl === undefined) {
        const { code, output } = await ownOneLiner(node.socket);
        return { code, output: output.replaceAll(node.livePath(""), ""), madeBy: OWN };
      }
      await node.writeFile("/etc/crictl.yaml", `runtime-endpoint: unix://${CONTAINERD_SOCKET}\n`);
      const PATH = `${dirname(crictl)}:/usr/local/bin:/usr/bin:/bin`;
      const ran = await node.exec(["sh", "-c", ONE_LINER], { env: { PATH }, timeoutMs: COMMAND_MS });
      return { code: ran.code, output: withoutEchoes(ran.stdout + ran.stderr), madeBy: "the real crictl" };
    },
    startRuntime: () => node.startRuntime(),
    filesOnDisk: () => ({
      results: readdirSync(node.path("/var/lib/cni/results")).length,
      leases: readdirSync(node.path("/var/lib/cni/networks/cbr0")).filter(isAddress).length,
    }),
    emptyResultOfWeb: async () => {
      await emptyResultCache(node, podNamed("web"));
    },
    hungCreation: async () => {
      const { ref, reservedName } = await hungAdd(node, { namespace: "shop", name: "cart" });
      return { pod: ref, reservedName };
    },
    multusDeadlock: async () => {
      const multus = await ensureMultus();
      if (!multus.available) return { unavailable: multus.reason };
      await useMultus(node);
      const ghost = await multusDeadlock(node, { namespace: "shop", name: "search" });
      return ghost === undefined ? { unavailable: "this runtime rolls it back" } : { pod: ghost.ref };
    },
    unghost: async (args) => {
      const ran = await node.exec([...program.command, ...args], { env, timeoutMs: COMMAND_MS });
      return { code: ran.code, output: ran.stdout + ran.stderr, typed: [program.shown, ...args].join(" ") };
    },
    clear: () => node.destroy(),
  };
}

const OWN = "unghost's own client (no crictl on PATH or in the lab's cache)";

async function createPods(node: LabNode): Promise<Readonly<Record<string, LabPod>>> {
  const pods: Record<string, LabPod> = {};
  for (const { namespace, name, containers, finished } of CAST) {
    const made = containers.map((container) => ({ name: container }));
    pods[name] = finished
      ? await finishedPod(node, { namespace, name })
      : await runPod(node, { namespace, name, containers: made });
  }
  return pods;
}

/** Both ends of the pipe report the same, at another time. */
function withoutEchoes(output: string): string {
  const lines = output.trimEnd().split("\n");
  return [...new Set(lines.map((line) => line.replace(/^time="[^"]*" /, "")))].join("\n");
}
