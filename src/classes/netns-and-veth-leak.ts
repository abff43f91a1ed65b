import type { Detected } from "../evidence/finding.ts";
import { isSettled } from "../evidence/pod-presence.ts";
import type { NodeView } from "../evidence/view.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const netnsAndVethLeak: ClassDefinition = {
  id: "netns-and-veth-leak",
  code: "C7",
  title: "Network namespace without a pod",
  explanation:
    "A network namespace is still mounted below /run/netns though no sandbox refers to it and no process lives in it. Its virtual interface and address route stay on the node.",
  mechanism:
    "The runtime died before it had written the path down, or a rollback failed. The names are random, so nothing finds them again.",
  inSnapshot: "A cni-* namespace that no sandbox refers to and whose inode is no process's network namespace.",
  versions: { since: "every release", until: "open", ends: "Upgrade containerd beyond 2.0.5, where it is rarer." },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: ["Unmount the namespace lazily and unlink its file; the interface goes with it."],
    gates: [
      "No sandbox refers to it.",
      "No process lives in it.",
      "It is older than half an hour and its name starts with cni-.",
    ],
  },
  byHand: ["umount -l /run/netns/cni-<uuid> && rm /run/netns/cni-<uuid>, after checking lsns -t net."],
  danger: "Other runtimes (podman, CRI-O) keep theirs in the same directory.",
  links: ["cri-o/cri-o#273", "containerd/containerd/pull/5904", "containerd/containerd/pull/11576"],
  detect,
};

/** The prefix of containerd's namespaces; others in the same directory are ignored. */
const CONTAINERD_PREFIX = "cni-";

function detect(view: NodeView): readonly Detected[] {
  const { netns, containerd, processes } = view.snapshot;
  if (netns.status !== "read" || containerd.status !== "read" || processes.status !== "read") return [];
  const { records, sandboxes } = containerd.value;
  const referenced = new Set([
    ...[...records, ...sandboxes].map(({ sandbox }) => baseName(sandbox?.netnsPath ?? "")),
    ...processes.value.plugins.map((plugin) => baseName(plugin.netns)),
  ]);
  return netns.value
    .filter(({ name }) => name.startsWith(CONTAINERD_PREFIX) && !referenced.has(name))
    .filter(({ inode }) => inode === undefined || !processes.value.netnsInodes.has(inode))
    .filter(({ modifiedAt }) => isSettled(modifiedAt, view))
    .map(
      ({ path, inode }): Detected => ({
        severity: "info",
        subject: { type: "netns", path },
        summary:
          inode === undefined
            ? "a leftover file of a network namespace that is not mounted any more"
            : "a network namespace that no sandbox refers to and no process lives in; its end of a veth pair stays on the host with it",
        evidence: [
          { source: "containerd", fact: "no sandbox record refers to it" },
          {
            source: "processes",
            fact: inode === undefined ? "nothing is mounted there" : `no process is in net:[${inode}]`,
          },
        ],
        cure: [{ kind: "remove-netns", path, inode }],
      }),
    );
}

/** /var/run/netns and /run/netns are the same directory; the names are random, so the base name is enough. */
function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
