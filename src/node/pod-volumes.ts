import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, statsOf } from "../host/safe-fs.ts";
import { absent, read, type Source } from "../host/source.ts";
import { mountsOf } from "./mounts.ts";
import { podUid } from "./types/ids.ts";
import type { PodVolumes, Snapshot } from "./types/snapshot.ts";

/** Node of a hundred pods, and each that is deleted has one for a moment. */
const MAX_PODS = 50;
/** The API's uids. Static pods have the hash of their manifest instead, and belong to no object that is deleted. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Kubelet's directories of pods that the API server is deleting, or does not have: kubelet unmounts their volumes and
 * removes the directory, if nothing keeps it from that. Nothing below a mount is read, because its storage may hang.
 */
export function readPodVolumes(
  { kubernetes }: Pick<Snapshot, "kubernetes">,
  where: { readonly root: string; readonly kubeletRoot: string },
): Source<readonly PodVolumes[]> {
  if (kubernetes.source !== "api") return absent("only the API server shows which pods are deleted");
  const known = new Map<string, boolean>(kubernetes.pods.map(({ uid, terminating }) => [uid, terminating === true]));
  const dir = `${where.kubeletRoot}/pods`;
  const ended = entriesIn(resolveOnHost(where.root, dir, "keep"))
    .filter(({ name, kind }) => kind === "directory" && UUID.test(name) && known.get(name) !== false)
    .slice(0, MAX_PODS);
  if (ended.length === 0) return read([]);
  const points = mountsOf(where.root, 1).map(({ point }) => point);
  return read(
    ended.flatMap(({ name }) => {
      const path = `${dir}/${name}`;
      const changedAt = lastChange(where.root, path);
      if (changedAt === undefined) return [];
      return [
        { uid: podUid(name), path, changedAt, mounts: points.filter((point) => point.includes(`/pods/${name}/`)) },
      ];
    }),
  );
}

const LEVELS = ["", "/volumes", "/volume-subpaths"];

/** When kubelet last added or removed a volume; undefined if the directory was just removed. */
function lastChange(root: string, path: string): Date | undefined {
  const levels = LEVELS.flatMap((level) => [`${path}${level}`, ...pluginsIn(root, `${path}${level}`, level)]);
  const times = levels.flatMap((level) => statsOf(resolveOnHost(root, level, "keep"))?.mtimeMs ?? []);
  return times.length === 0 ? undefined : new Date(Math.max(...times));
}

/** `volumes/<plugin>`: one directory of the pod's own for each plugin, and the mounts are below it. */
function pluginsIn(root: string, path: string, level: string): readonly string[] {
  if (level !== "/volumes") return [];
  return entriesIn(resolveOnHost(root, path, "keep")).flatMap(({ name, kind }) =>
    kind === "directory" ? [`${path}/${name}`] : [],
  );
}
