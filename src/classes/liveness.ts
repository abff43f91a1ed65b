import type { Sandbox } from "../snapshot/types.ts";
import { containerInWords } from "./container-words.ts";
import type { Evidence } from "./finding.ts";
import type { AboutId, NodeView } from "./view.ts";

/**
 * Whether anything of a sandbox still lives.
 * - `alive`: something runs; whatever the CRI state says, hands off.
 * - `dead`: every source that could show life was read and shows none.
 * - `unproven`: nothing shows life, but a source that could have was not readable.
 */
export type Liveness =
  | { readonly state: "alive"; readonly because: string }
  | { readonly state: "dead"; readonly evidence: readonly Evidence[] }
  | { readonly state: "unproven"; readonly because: string };

const LIVE_TASKS = new Set(["created", "running", "paused", "pausing"]);

export function livenessOf(sandbox: Sandbox, view: NodeView): Liveness {
  const about = view.about(sandbox.id);
  const life = signOfLife(sandbox, about);
  if (life !== undefined) return { state: "alive", because: life };
  const { processes, containerd } = view.snapshot;
  if (processes.status !== "read") {
    return { state: "unproven", because: "the process table could not be read, so a shim or pause may still live" };
  }
  if (containerd.status === "failed") {
    return { state: "unproven", because: "containerd's tasks could not be read, so one may still live" };
  }
  const evidence: Evidence[] = [
    { source: "cri", fact: `listed as NotReady, with ${containersInWords(about)}` },
    { source: "processes", fact: "no shim and no process carries its id" },
  ];
  if (containerd.status === "read") evidence.push({ source: "containerd", fact: "no live task" });
  return { state: "dead", evidence };
}

function signOfLife(sandbox: Sandbox, about: AboutId): string | undefined {
  if (sandbox.state === "ready") return "it is Ready";
  const running = about.containers.find((container) => container.state === "running");
  if (running !== undefined) return `its container ${running.name} is running`;
  const task = about.task;
  if (task !== undefined && LIVE_TASKS.has(task.status)) return `its task is ${task.status} (pid ${task.pid})`;
  const shim = about.shims[0];
  if (shim !== undefined) return `its shim is alive (pid ${shim.pid})`;
  const pid = about.pids[0];
  if (pid !== undefined) return `process ${pid} runs in its cgroup`;
  return undefined;
}

function containersInWords(about: AboutId): string {
  if (about.containers.length === 0) return "no container";
  const states = about.containers.map(containerInWords);
  return `container${states.length === 1 ? "" : "s"} ${states.join(", ")}`;
}
