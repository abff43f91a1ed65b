import { resolveOnHost } from "../host/paths.ts";
import { describeKind, entriesIn, failedListing, listDirectory, undecodableNames } from "../host/safe-fs.ts";
import { absent, failed, read, type Source } from "../host/source.ts";
import { printable } from "../host/text.ts";
import { provePath } from "../host/trusted-path.ts";
import { type PodUid, podUid } from "./types/ids.ts";
import type { KnownPod } from "./types/snapshot.ts";

export const DEFAULT_POD_LOGS = "/var/log/pods";

/** API UIDs, and the bare hashes that static pods have instead. */
const POD_UID = /^[A-Za-z0-9][A-Za-z0-9.-]{0,127}$/;

/**
 * The pods that have a directory in the kubelet's root: the source of pods when the API does not answer. A pod without
 * one is gone for the kubelet; a pod with one may be terminating.
 */
export function readKubeletDirs(where: {
  readonly root: string;
  /** The first existing one counts. */
  readonly kubeletRoots: readonly string[];
  /** `<namespace>_<pod>_<uid>` below map UIDs to names. */
  readonly podLogs: string;
}): Source<readonly KnownPod[]> {
  for (const kubeletRoot of where.kubeletRoots) {
    const dir = `${kubeletRoot}/pods`;
    const opened = resolveOnHost(where.root, dir, "keep");
    const listing = listDirectory(opened);
    if (listing.kind === "absent") continue;
    if (listing.kind === "refused") return failedListing(dir, listing);
    // A missing directory means that the pod is gone, so only root may be able to remove it.
    const trust = provePath(where.root, dir);
    if (trust.kind === "refused") return failed(`the kubelet's ${dir} is not used: ${trust.detail} (${trust.next})`);

    const names = readPodNames(where.root, where.podLogs);
    const pods: KnownPod[] = [];
    const oddities = undecodableNames(dir, listing.undecodable);
    for (const { name, kind } of listing.entries) {
      if (kind !== "directory" || !POD_UID.test(name)) {
        const reason =
          kind === "directory" ? "its name is no pod UID" : `is ${describeKind(kind)} where a pod's directory belongs`;
        oddities.push({ path: `${dir}/${printable(name)}`, reason });
        continue;
      }
      const uid = podUid(name);
      const { namespace, pod } = names.get(uid) ?? {};
      pods.push({ namespace, name: pod, uid });
    }
    return read(pods, oddities);
  }
  return absent(`no kubelet has a directory of pods here: searched ${where.kubeletRoots.join(", ")}`);
}

/** Errors are ignored: names are optional, the UIDs are the facts. */
function readPodNames(root: string, podLogs: string): ReadonlyMap<PodUid, { namespace: string; pod: string }> {
  const names = new Map<PodUid, { namespace: string; pod: string }>();
  for (const { name, kind } of entriesIn(resolveOnHost(root, podLogs, "keep"))) {
    const [namespace, pod, uid, ...more] = name.split("_");
    if (kind === "directory" && namespace && pod && uid && more.length === 0)
      names.set(podUid(uid), { namespace, pod });
  }
  return names;
}
