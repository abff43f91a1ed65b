import type { FailureClass } from "../failure-class.ts";

export const containerCreateStatHang: FailureClass = {
  id: "container-create-stat-hang",
  code: "A8",
  category: "creation-blocked",
  title: "Container creation hangs on a dead volume",
  explanation:
    "A volume of this pod lies on storage that no longer answers (NFS, CIFS, a CSI mount). The runtime asks the kernel whether the path exists and never gets an answer; every retry then fails on the container's name.",
  mechanism:
    "While building the container's specification containerd calls stat on each mount source. On a dead network file system that call sleeps uninterruptibly and cannot be cancelled.",
  signatures: () => [
    {
      text: 'failed to generate spec: failed to stat "<volume path>": …',
      pattern: /failed to generate spec: failed to stat/,
      unless: /no such file or directory|not a directory|permission denied/,
      level: "cause",
      confidence: 0.8,
    },
    {
      text: 'failed to reserve container name "…": name "…" is reserved for "<id>", for hours',
      pattern: /failed to reserve container name/,
      level: "symptom",
      confidence: 0.15,
      decides:
        "It lasts for hours, and a thread of containerd sleeps in stat on a mount (state D, stack with nfs, cifs or fuse).",
    },
    {
      text: "INFO: task containerd:<pid> blocked for more than <n> seconds.",
      pattern: /task containerd\S{0,12}:\d{1,8} blocked for more than/,
      level: "symptom",
      confidence: 0.3,
      decides: "The call trace that follows names nfs, cifs, ceph or fuse functions.",
    },
  ],
  logFragments: ["reserve", "failed to stat", "blocked for more than"],
  inSnapshot: {
    visible: false,
    why: "The create is in flight and listed nowhere; only a thread in uninterruptible sleep and the mount it waits for would show it.",
  },
  versions: "All containerd releases.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Bring the storage server back.", "If it is gone for good: unmount the dead path lazily."],
    gates: ["A thread of the runtime sleeps on exactly that mount."],
  },
  byHand: [
    "Find the mount: list processes in state D, and mounts on which df or stat hang.",
    "Restore the server, or umount -l the path when its data is not needed any more.",
  ],
  danger: "A lazy unmount loses what was not written yet. Restarting containerd does not help.",
  links: [
    "https://github.com/containerd/containerd/issues/10828",
    "https://github.com/containerd/containerd/issues/13867",
    "https://github.com/containerd/containerd/issues/1722",
  ],
};
