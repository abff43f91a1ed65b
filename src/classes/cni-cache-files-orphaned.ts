import type { Detected } from "../evidence/finding.ts";
import { replaysOf, stepToMoveOrphan } from "../evidence/sandbox-detected.ts";
import { evidenceOfAbsence, unknownIds } from "../evidence/unknown-ids.ts";
import { cacheFilesOf, type NodeView } from "../evidence/view.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const cniCacheFilesOrphaned: ClassDefinition = {
  id: "cni-cache-files-orphaned",
  code: "C6",
  title: "CNI cache files of pods that are gone",
  explanation:
    "Files below /var/lib/cni remember networks of sandboxes that no longer exist. They grow in number with each crash, and sometimes they are the only record of an address that still has to be freed.",
  mechanism: "A cache file is removed only after a successful DEL, and /var/lib survives a reboot.",
  inSnapshot: "A result, multus or flannel file whose id is neither listed over CRI nor in the runtime's records.",
  versions: {
    since: "every release",
    until: "open",
    ends: "No upgrade: they are left by removals that did not complete.",
  },
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Call DEL again with the cached configuration: the plugins release what they still hold.",
      "Move the file to quarantine.",
    ],
    gates: [
      "The id has been unknown for a day, or since before the current boot.",
      "No address file names the id any more.",
    ],
  },
  byHand: ["Free the addresses of the id first, then remove the files."],
  danger: "The multus file may be the only record of which networks a pod had: free those first.",
  links: ["cri-o/cri-o#3581", "kubernetes/kubernetes/pull/81828", "bottlerocket-os/bottlerocket/pull/3792"],
  detect,
};

/**
 * Files whose sandbox also leaked an address belong to that leak: they are needed for a proper DEL. A file that only
 * has the name of a cache file (too large, another owner) is reported as a problem and not moved.
 */
function detect(view: NodeView): readonly Detected[] {
  return unknownIds(view).flatMap(({ id, about }) => {
    const files = cacheFilesOf(about).filter(({ health }) => health !== "odd");
    const [first] = files;
    if (first === undefined || about.leases.length > 0) return [];
    return [
      {
        severity: "info",
        subject: { type: "file", path: first.path, sandboxId: id },
        summary:
          about.results.length > 0
            ? "the cached network of a sandbox that no longer exists: its DEL may never have reached the plugins, and this is the only record of it"
            : "a cache file of a sandbox that no longer exists",
        evidence: [
          ...files.map((file) => ({ source: "cni", fact: `${file.path} names ${id}` })),
          ...evidenceOfAbsence(view),
        ],
        cure: [...replaysOf(id, about.results), ...files.map(stepToMoveOrphan)],
      } satisfies Detected,
    ];
  });
}
