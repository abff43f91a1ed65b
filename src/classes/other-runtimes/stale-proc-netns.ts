import type { FailureClass } from "../failure-class.ts";

export const staleProcNetns: FailureClass = {
  id: "stale-proc-netns",
  code: "O3",
  category: "other-runtime",
  title: "Namespace remembered by process number",
  explanation:
    "An old CRI-O or docker remembers a pod's network by the number of its first process. That process is gone, or worse, after a reboot the number belongs to another one, and taking the network down hits the wrong namespace, the host's included.",
  mechanism:
    "The namespace path was /proc/<pid>/ns/net. After a reboot the pid is reused; DEL then ran in the host's namespace and took lo down.",
  signatures: () => [
    {
      text: 'failed to Statfs "/proc/<pid>/ns/net": no such file or directory',
      pattern:
        /\/proc\/\d{1,8}\/ns\/net:? (?:no such file|unknown fs_magic)|(?:cannot open|failed to open netns|statfs) \/proc\/\d{1,8}\/ns\/net/,
      level: "cause",
      confidence: 0.8,
    },
    {
      text: 'NetworkPlugin cni failed on the status hook for pod "<pod>_<namespace>": …',
      pattern: /networkplugin \S{1,20} failed on the status hook/,
      level: "wrapper",
      confidence: 0.5,
      decides:
        "The pod: if it has just ended, dockershim only asked too late and nothing is wrong; if it should be running, its first process is gone.",
    },
  ],
  logFragments: ["cni", "/ns/net"],
  inSnapshot: { visible: false, why: "The runtimes concerned are no longer in use with a CRI that could be asked." },
  versions: "Old CRI-O and docker (dockershim).",
  treatment: { mode: "none", reversible: false, steps: [], gates: [] },
  byHand: ["Upgrade the runtime. Never run a plugin's DEL by hand with a /proc path."],
  danger: "A DEL with a reused process number runs in a foreign namespace and can cut the host off.",
  links: [
    "https://github.com/cri-o/cri-o/issues/2849",
    "https://github.com/openshift/containernetworking-plugins/pull/16",
  ],
};
