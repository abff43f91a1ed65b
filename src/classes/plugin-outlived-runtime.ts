import type { Detected } from "../evidence/finding.ts";
import { oldestOfEachSandbox } from "../evidence/locks.ts";
import { hasOutlivedRuntime } from "../evidence/outlived-plugins.ts";
import { podOfCall } from "../evidence/reports.ts";
import { hungProcess } from "../evidence/step.ts";
import { isRecorded, type NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { durationInWords } from "../host/text.ts";
import type { PluginProcess } from "../node/types/runtime.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const pluginOutlivedRuntime: ClassDefinition = {
  id: "plugin-outlived-runtime",
  code: "C14",
  title: "Network plugin of an earlier runtime still runs",
  explanation:
    "A network plugin hung while the runtime was restarted. The new runtime does not know the call, so nothing waits for its result and nothing rolls it back: the process stays, and with it the address and the network namespace that it had set up so far.",
  mechanism:
    "containerd and k3s restart with KillMode=process, which leaves child processes in the unit's cgroup. The runtime removes a half-made sandbox without asking whether its plugin still runs.",
  inSnapshot:
    "A process with CNI_COMMAND and a full id in its environment, started before the runtime that runs now, whose standard output still is the pipe to the earlier one.",
  versions: {
    since: "every release",
    until: "open",
    ends: "Repair what the plugin waits for: a plugin that ends does not outlive its runtime.",
    note: "Runtimes whose unit leaves child processes behind: k3s, rke2, containerd.",
  },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: [
      "End the plugin process and its children.",
      "Release what it held: address, cache file, network namespace.",
    ],
    gates: [
      "It runs as root in no container, and was started by the runtime (its descendant, or in the cgroup of its unit).",
      "It started before the runtime that runs now, which has been up for 30 seconds.",
      "The runtime lists no Ready sandbox of that id.",
      "Its standard output is a pipe: a daemon that a plugin started on purpose has closed it, or the call had never ended.",
    ],
  },
  byHand: [
    "ps -eo pid,ppid,lstart,args: find CNI plugins that are older than the runtime; CNI_CONTAINERID in /proc/<pid>/environ is the sandbox.",
    "End the process, then release the addresses of that id.",
  ],
  danger: "A daemon that a plugin started keeps the environment of that call forever: ending it cuts off every pod.",
  links: ["containerd/containerd#12438", "k3s-io/k3s#14078"],
  detect,
};

function detect(view: NodeView): readonly Detected[] {
  const plugins = valueOr(view.snapshot.processes, undefined)?.plugins ?? [];
  const left = plugins.filter((plugin) => isLeftBehind(plugin, view));
  return [...oldestOfEachSandbox(left, "ADD"), ...oldestOfEachSandbox(left, "DEL")].map((plugin) => {
    const { pid, command, cniCommand, ageSeconds, sandboxId } = plugin;
    const pods = podOfCall(plugin, view).map(({ namespace, name }) => `, of pod ${namespace}/${name}`);
    const up = durationInWords(view.runtimeUpSeconds ?? 0);
    return {
      severity: "warning",
      subject: { type: "process", pid, sandboxId },
      summary: `a network plugin outlived the runtime that had called it${pods.join("")}: nothing waits for its result, and it may hold an address and a network namespace`,
      evidence: [
        {
          source: "processes",
          fact: `pid ${pid} (${command}) carries CNI_COMMAND=${cniCommand} for ${sandboxId} since ${durationInWords(ageSeconds)}`,
        },
        { source: "processes", fact: `the runtime that runs now started ${up} ago, after it` },
      ],
      cure: [{ kind: "end-process", ...hungProcess(plugin) }],
    };
  });
}

function isLeftBehind(plugin: PluginProcess, view: NodeView): boolean {
  const about = view.about(plugin.sandboxId);
  if (view.snapshot.cri.status !== "read" || about.sandbox?.state === "ready") return false;
  const isOurs = plugin.origin === "runtime" || about.sandbox !== undefined || isRecorded(about);
  return isOurs && plugin.holdsResultPipe === true && hasOutlivedRuntime(plugin, view);
}
