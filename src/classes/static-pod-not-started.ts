import { endedInOrder } from "../evidence/ending.ts";
import type { Detected } from "../evidence/finding.ts";
import { kubeletUpMs } from "../evidence/pod-presence.ts";
import { callReports, isFresh } from "../evidence/reports.ts";
import { creationsUnderWay } from "../evidence/sandbox-creations.ts";
import type { NodeView } from "../evidence/view.ts";
import { durationInWords } from "../host/text.ts";
import type { Sandbox } from "../node/types/runtime.ts";
import type { StaticManifest } from "../node/types/snapshot.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const staticPodNotStarted: ClassDefinition = {
  id: "static-pod-not-started",
  code: "A21",
  title: "Kubelet no longer tries to start a static pod",
  explanation:
    "A manifest of a static pod is in kubelet's directory, and kubelet runs, but the pod has no running sandbox and kubelet makes no attempt to create one. On a control plane this may be etcd or the API server.",
  mechanism:
    "Kubelet decides about a static pod when it reads the manifest or starts. A pod that was evicted, or refused at admission (too little memory or CPU while dead pods still counted), is final for it, and a replacement waits for the end of the previous pod, which may never be reported. It reads the manifest again only when that changes or kubelet starts.",
  inSnapshot:
    "A manifest older than --min-age in the directory of static pods of a kubelet that has run for longer; the runtime lists no Ready sandbox of the pod, none is being created, and no log reports an attempt.",
  versions: {
    since: "every kubelet; 1.22.8 and 1.22.9 also after a manifest was changed",
    until: "open",
    ends: "No upgrade yet: pull request 138395 tries a refused static pod again. A restart of kubelet ends it.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Read why: journalctl --no-pager -l -u kubelet | grep <pod>, and crictl pods --name <pod>.",
      "Free what it lacks: memory, CPU, disk; remove what is dead of it (unghost heal).",
      "Restart kubelet, or move the manifest out of the directory, wait for twenty seconds, and move it back.",
    ],
    gates: ["No sandbox and no process of the previous pod is left."],
  },
  byHand: [
    "crictl pods --name <pod>; journalctl --no-pager -l -u kubelet | grep -E 'admission|evict|<pod>'",
    "mv /etc/kubernetes/manifests/<file> /root/ && sleep 20 && mv /root/<file> /etc/kubernetes/manifests/, or systemctl restart kubelet.",
  ],
  danger: "Two copies of etcd or of a controller on one data directory: make sure that nothing of the old pod runs.",
  links: [
    "kubernetes/kubernetes#138391",
    "kubernetes/kubernetes#116484",
    "kubernetes/kubernetes#76598",
    "kubernetes/kubernetes#71134",
    "kubernetes/kubernetes#109596",
    "kubernetes/kubernetes/pull/138395",
  ],
  detect,
};

function detect(view: NodeView): readonly Detected[] {
  const { staticManifests, cri, observedAt } = view.snapshot;
  if (staticManifests?.status !== "read" || cri.status !== "read" || cri.value.sandboxesIncomplete === true) return [];
  const upMs = kubeletUpMs(view);
  if (upMs < view.policy.minAgeMs || creationsUnderWay(view).length > 0) return [];
  return staticManifests.value.flatMap((manifest) => {
    const ageMs = observedAt.getTime() - manifest.modifiedAt.getTime();
    const own = view.sandboxes.filter((sandbox) => isOf(sandbox, manifest));
    if (ageMs < view.policy.minAgeMs || !own.every((sandbox) => isLongDead(sandbox, view))) return [];
    if (callReports(view).some((report) => isFresh(report, view) && isNamed(report.pod, manifest))) return [];
    const { path, namespace, name } = manifest;
    const last = own.toSorted((one, other) => Number(other.createdAt - one.createdAt))[0];
    return [
      {
        severity: "critical",
        steps: [
          `Read why: journalctl --no-pager -l -u kubelet | grep ${name}`,
          ...(last === undefined ? [] : [`Remove what is dead of it: unghost heal ${namespace}/${last.pod.name}`]),
          `Restart kubelet, or move ${path} out of its directory, wait for twenty seconds, and move it back.`,
        ],
        subject: { type: "file", path },
        summary: `kubelet has run for ${inWords(upMs)} and does not start the static pod ${namespace}/${name}`,
        evidence: [
          { source: "kubelet", fact: `${path} was last written ${inWords(ageMs)} ago` },
          {
            source: "cri",
            fact:
              last === undefined ? "the runtime lists no sandbox of it" : `its last sandbox, ${last.id}, is NotReady`,
          },
          { source: "logs", fact: "no log reports an attempt, and no creation is under way" },
        ],
        blocks: [`static pod ${namespace}/${name}`],
      } satisfies Detected,
    ];
  });
}

/** Kubelet appends the node's name. */
function isOf({ pod, annotations }: Sandbox, manifest: StaticManifest): boolean {
  return annotations["kubernetes.io/config.source"] === "file" && isNamed(pod, manifest);
}

function isNamed(
  pod: { readonly namespace: string; readonly name: string } | undefined,
  { namespace, name }: StaticManifest,
): boolean {
  return pod !== undefined && pod.namespace === namespace && pod.name.startsWith(`${name}-`);
}

/** A pod that finished in order is done, and one that died a moment ago is still kubelet's. */
function isLongDead(sandbox: Sandbox, view: NodeView): boolean {
  const about = view.about(sandbox.id);
  if (sandbox.state === "ready" || endedInOrder(about)) return false;
  const ends = about.containers.map(({ exit }) => Number((exit?.finishedAt ?? 0n) / 1_000_000n));
  const lastMs = Math.max(Number(sandbox.createdAt / 1_000_000n), ...ends);
  return view.snapshot.observedAt.getTime() - lastMs >= view.policy.minAgeMs;
}

function inWords(milliseconds: number): string {
  return durationInWords(Math.floor(milliseconds / 1000));
}
