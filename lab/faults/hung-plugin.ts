import { type PodRef, type SandboxId, sandboxId, sandboxName } from "../../src/node/types/ids.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { type CniCommand, liftOrder, orderAtGate } from "../cni-gate.ts";
import type { LabNode } from "../node.ts";
import { processesOf } from "../node-processes.ts";
import { type LabPod, type PodSpec, podRef, sandboxConfig } from "../pods.ts";
import { until } from "../poll.ts";
import type { Injected } from "./injected.ts";

/** A grandchild that keeps the plugin's stdout open: libcni waits for its end, whatever the caller's deadline. */
const HANG = "sleep 1000000000 &\nexit 0\n";
/** The first call hangs, and every later one works, so that kubelet's next attempt succeeds. */
export const HANG_ONCE = `rm -f "$order"\n${HANG}`;
const FIND_MS = 60_000;
const CALLER_GIVES_UP_MS = 1000;

export interface HungAdd extends Injected {
  readonly ref: PodRef;
  readonly reservedName: string;
  readonly sandboxId: SandboxId;
  readonly pid: number;
}

/**
 * An ADD that never ends: the caller times out, the runtime does not, and holds the pod's name for an unlisted sandbox.
 * A later ADD of the same pod works again.
 */
export async function hungAdd(node: LabNode, spec: PodSpec): Promise<HungAdd> {
  const ref = podRef(spec);
  await orderAtGate(node, "ADD", ref.name, HANG);
  let giveUpMs = CALLER_GIVES_UP_MS;
  const plugin = await until(`the hung ADD of ${ref.name} is there`, FIND_MS, async () => {
    try {
      await node.cri.runPodSandbox(sandboxConfig(spec, ref), { timeoutMs: giveUpMs });
      throw new Error(`the ADD of ${ref.name} was ordered to hang and did not`);
    } catch (error) {
      if (!(error instanceof RuntimeError)) throw error;
      // A call that times out before it has reached the plugin ends there. CRI-O refuses calls while it reloads the
      // network.
      if (error.kind === "deadline") giveUpMs *= 2;
    }
    return pluginOf(node, "ADD", ref.name);
  });
  await liftOrder(node, "ADD", ref.name);
  const did = `made the ADD of ${ref.namespace}/${ref.name} hang in process ${plugin.pid}`;
  return { fault: "hung-add", did, ref, reservedName: sandboxName(ref), sandboxId: plugin.sandboxId, pid: plugin.pid };
}

/** From now on each DEL of the pod hangs, until the order is removed and the process ended. */
export async function hangingDel(node: LabNode, pod: LabPod): Promise<Injected> {
  await orderAtGate(node, "DEL", pod.ref.name, HANG);
  const did = `makes every DEL of ${pod.ref.namespace}/${pod.ref.name} hang`;
  return { fault: "hanging-del", did, sandboxId: pod.sandboxId };
}

/** Found like unghost does: by its environment, which contains command, sandbox and pod. */
export function pluginOf(
  node: LabNode,
  command: CniCommand,
  podName: string,
): { readonly pid: number; readonly sandboxId: SandboxId } | undefined {
  for (const { pid, environment } of processesOf(node)) {
    // The loopback plugin that containerd 1.x calls first ends within milliseconds.
    if (environment.get("CNI_COMMAND") !== command || environment.get("CNI_IFNAME") === "lo") continue;
    if (!environment.get("CNI_ARGS")?.split(";").includes(`K8S_POD_NAME=${podName}`)) continue;
    return { pid, sandboxId: sandboxId(environment.get("CNI_CONTAINERID") ?? "") };
  }
  return undefined;
}
