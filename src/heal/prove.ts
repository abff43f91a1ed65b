import { ContainerState, PodSandboxState } from "../runtime/gen/runtime/v1/cri.ts";
import type { NodeTools } from "./node-tools.ts";

/** What a sandbox is found to be immediately before it is touched. */
export type Proof =
  | { readonly state: "dead"; readonly containerIds: readonly string[] }
  | { readonly state: "gone" }
  | { readonly state: "alive"; readonly because: string };

const LIVE_TASKS = new Set(["created", "running", "paused", "pausing"]);

/** The gates of liveness, renewed: NotReady in status, no container running, no live task, no process with its id. */
export async function proveDead(id: string, tools: NodeTools): Promise<Proof> {
  const call = { timeoutMs: tools.waits.lookMs };
  const state = (await tools.facts.sandbox(id))?.state ?? (await tools.cri.podSandboxState(id, call));
  if (state === undefined) return { state: "gone" };
  if (state !== PodSandboxState.SANDBOX_NOTREADY) return { state: "alive", because: "it is Ready" };
  const containers = await tools.facts.containersOf(id);
  const running = containers.find((container) => container.state === ContainerState.CONTAINER_RUNNING);
  if (running !== undefined) {
    return { state: "alive", because: `its container ${running.metadata?.name ?? running.id} is running` };
  }
  const containerIds = containers.map((container) => container.id);
  const life = await signOfLife([id, ...containerIds], tools);
  return life === undefined ? { state: "dead", containerIds } : { state: "alive", because: life };
}

async function signOfLife(ids: readonly string[], tools: NodeTools): Promise<string | undefined> {
  const [processes, tasks] = await Promise.all([tools.facts.processes(), tools.facts.tasks()]);
  if (processes.status !== "read") return "the process table cannot be read, so it may still live";
  for (const id of ids) {
    const task = tasks.find((one) => one.containerId === id && LIVE_TASKS.has(one.status));
    if (task !== undefined) return `its task is ${task.status} (pid ${task.pid})`;
    const shim = processes.value.shims.find((one) => one.id === id);
    if (shim !== undefined) return `its shim is alive (pid ${shim.pid})`;
    const [pid] = processes.value.byContainer.get(id) ?? [];
    if (pid !== undefined) return `process ${pid} runs in its cgroup`;
  }
  return undefined;
}

/** Whether the runtime or any process knows the id; in words when it does. */
export async function whoKnows(id: string, tools: NodeTools): Promise<string | undefined> {
  let knower = await knowerIn(tools, id);
  // The reading that all share may be from before this very sandbox was removed, and a plugin that kubelet has set to
  // work before that removal ends by itself.
  for (let waited = 0; knower !== undefined; waited += PLUGIN_STEP_MS) {
    tools.facts.renew();
    knower = await knowerIn(tools, id);
    if (knower !== PLUGIN || waited >= tools.waits.pluginMs) break;
    await tools.sleep(PLUGIN_STEP_MS);
  }
  return knower;
}

const PLUGIN = "a network plugin works on it";
const PLUGIN_STEP_MS = 100;

async function knowerIn(tools: NodeTools, id: string): Promise<string | undefined> {
  if ((await tools.facts.sandbox(id)) !== undefined) return "the runtime lists it";
  const [processes, containerd] = await Promise.all([tools.facts.processes(), tools.facts.containerd()]);
  if (containerd?.records.some((record) => record.id === id)) return "containerd has a record of it";
  if (containerd?.sandboxes.some((sandbox) => sandbox.id === id)) return "containerd's sandbox store has it";
  if (processes.status !== "read") return "the process table cannot be read, so something may";
  const { shims, plugins, byContainer, othersIds } = processes.value;
  if (shims.some((shim) => shim.id === id)) return "a shim carries it";
  if (plugins.some((plugin) => plugin.sandboxId === id)) return PLUGIN;
  if (othersIds?.has(id)) return "it is alive in another runtime on this machine";
  return byContainer.has(id) ? "a process runs in its cgroup" : undefined;
}
