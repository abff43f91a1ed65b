import type { FailureClass } from "../failure-class.ts";

export const dockerNameConflict: FailureClass = {
  id: "docker-name-conflict",
  code: "O4",
  category: "other-runtime",
  title: "Docker: the pod's container name is in use",
  explanation:
    "Docker still has a container of the name that the kubelet needs, usually one from before a crash, or one that a clock step made the kubelet forget.",
  mechanism:
    "dockershim and cri-dockerd build the name from pod, uid and attempt; docker allows each name once, whether the container runs or not.",
  signatures: () => [
    {
      text: 'Conflict. The container name "/k8s_POD_…" is already in use by container "<id>". You have to remove (or rename) that container …',
      pattern: /container name \/?k8s_\S{1,400} is already in use by container/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: 'Conflict. The container name "…" is already in use by container "…" (names elided)',
      pattern: /the container name \S{1,400} is already in use by container/,
      within: /k8s_|sandbox|from runtime service|createcontainer/,
      level: "cause",
      confidence: 0.85,
    },
    {
      text: 'Unable to create pod sandbox due to conflict. Attempting to remove sandbox "<id>"',
      pattern: /unable to create pod sandbox due to conflict|failed to remove the conflicting container/,
      level: "cause",
      confidence: 0.9,
    },
  ],
  logFragments: ["sandbox", "container name", "conflicting container"],
  inSnapshot: { visible: false, why: "docker's own list is not read; cri-dockerd shows only what it manages." },
  versions: "docker with dockershim or cri-dockerd.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Remove the dead container that holds the name."],
    gates: ["The container is not running."],
  },
  byHand: ["docker ps -a --filter name=<name>: docker rm it if it is not running; otherwise restart the kubelet only."],
  danger: "The holder may be the running container (see A4): never docker rm -f it unseen.",
  links: [
    "https://github.com/kubernetes/kubernetes/issues/97153",
    "https://github.com/kubernetes/kubernetes/issues/94557",
    "https://github.com/kubernetes/kubernetes/pull/36768",
  ],
};
