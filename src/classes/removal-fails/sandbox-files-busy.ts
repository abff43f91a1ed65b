import type { FailureClass } from "../failure-class.ts";

export const sandboxFilesBusy: FailureClass = {
  id: "sandbox-files-busy",
  code: "B23",
  category: "removal-fails",
  title: "The sandbox's directory is still mounted somewhere",
  explanation:
    "The sandbox itself is stopped, but its files cannot be removed because another container holds a copy of one of its mounts. The sandbox stays listed until that container lets go.",
  mechanism:
    "The shm or rootfs mount was propagated into another mount namespace; unmount or rmdir in the host's answers EBUSY or ENOTEMPTY.",
  signatures: () => [
    {
      text: "failed to cleanup sandbox files: …",
      pattern: /failed to (?:clean ?up|unmount) sandbox files|failed to cleanup image mounts for sandbox/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: 'failed to remove sandbox root directory "<path>": … device or resource busy',
      pattern: /failed to remove (?:volatile )?sandbox root directory/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "failed to remove bundle … directory not empty",
      pattern: /failed to remove bundle[^]{0,300}?(?:directory not empty|device or resource busy)/,
      level: "cause",
      confidence: 0.85,
    },
    {
      text: "failed to remove pod sandbox <id>: … userdata/shm: device or resource busy",
      pattern:
        /(?:\/sandboxes\/|userdata\/shm|\/overlay-containers\/)[^]{0,200}?(?:device or resource busy|directory not empty)/,
      within: /remov|delet|unmount|clean|stop/,
      level: "cause",
      confidence: 0.85,
    },
    {
      text: "unlinkat /run/containerd/io.containerd.runtime.v2.task/k8s.io/<id>/rootfs: device or resource busy",
      pattern: /runtime\.v[12]\.(?:task|linux)\/k8s\.io\/\S{1,160}: (?:device or resource busy|directory not empty)/,
      level: "cause",
      confidence: 0.8,
    },
  ],
  logFragments: ["resource busy", "remove bundle", "sandbox", "not empty", "userdata/shm", "overlay-containers"],
  inSnapshot: {
    visible: false,
    why: "Mount tables of other processes are not searched yet; the error in the logs names the path.",
  },
  versions: "All.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Name the process, and its pod, that holds the mount.",
      "Restart that pod, or unmount lazily below the sandbox's own directory only.",
      "Remove the sandbox over CRI.",
    ],
    gates: ["The sandbox is dead.", "The path lies below this id's own directory."],
  },
  byHand: ["grep -l <id> /proc/[0-9]*/mountinfo: restart the holder, then crictl rmp <id>."],
  danger: "An unmount outside the id's own directory hits running pods.",
  links: ["https://github.com/containerd/containerd/issues/11376", "https://github.com/cri-o/cri-o/issues/1453"],
};
