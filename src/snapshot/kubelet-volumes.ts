import { lstatSync } from "node:fs";
import * as v from "valibot";
import { resolveOnHost } from "../host/host-paths.ts";
import { parseJson } from "../host/json.ts";
import { listDirectory, readRegularFile } from "../host/safe-fs.ts";
import { failed, read, type Source } from "../host/source.ts";

/** A CSI volume that kubelet has set up and not yet torn down, from its records on disk. */
export interface KubeletVolume {
  readonly path: string;
  /** The directory's name: kubelet's name of the volume, or a hash of its handle. */
  readonly name: string;
  readonly podUid?: string;
  /** Missing for directories of block volumes, which have no such file. */
  readonly data?: VolumeData;
}

export interface VolumeData {
  readonly driver?: string;
  readonly handle?: string;
  /** Of the PersistentVolume, or the pod's own name of the volume. */
  readonly specName?: string;
  readonly attachment?: string;
}

const text = v.nullish(v.string());
const VolumeDataSchema = v.object({ driverName: text, volumeHandle: text, specVolID: text, attachmentID: text });

const CSI = "kubernetes.io~csi";
const DATA_FILE = "vol_data.json";

class Unreadable extends Error {}

/**
 * All CSI volumes in the records of the kubelet with this root directory: published to pods, staged, and block devices.
 * Fails as a whole if one record is unreadable, because it may be the volume in question.
 */
export function readKubeletVolumes(root: string, kubeletRoot: string): Source<readonly KubeletVolume[]> {
  const at = (path: string) => resolveOnHost(root, `${kubeletRoot}/${path}`, "keep");
  const shown = (path: string) => `${kubeletRoot}/${path}`;
  const found: KubeletVolume[] = [];

  function names(path: string): readonly string[] {
    const listing = listDirectory(at(path));
    if (listing.kind === "absent") return [];
    if (listing.kind === "refused") throw new Unreadable(`${shown(path)} ${listing.reason}`);
    if (listing.undecodable.length > 0) throw new Unreadable(`${shown(path)} holds a name that is not valid UTF-8`);
    return listing.entries.map(({ name }) => name);
  }

  function record(path: string, name: string, podUid?: string, dataDir: string = path): void {
    const data = dataIn(at(`${dataDir}/${DATA_FILE}`), shown(`${dataDir}/${DATA_FILE}`));
    found.push({
      path: shown(path),
      name,
      podUid,
      data,
    });
  }

  try {
    if (!isDirectory(resolveOnHost(root, kubeletRoot, "follow"))) return failed(`there is no directory ${kubeletRoot}`);
    for (const uid of names("pods")) {
      if (!isDirectory(at(`pods/${uid}`))) continue;
      for (const kind of ["volumes", "volumeDevices"] as const) {
        const dir = `pods/${uid}/${kind}/${CSI}`;
        for (const name of names(dir)) record(`${dir}/${name}`, name, uid);
      }
      const subPaths = `pods/${uid}/volume-subpaths`;
      for (const name of names(subPaths))
        if (names(`${subPaths}/${name}`).length > 0) record(`${subPaths}/${name}`, name, uid);
    }
    const staged = "plugins/kubernetes.io/csi";
    for (const driver of names(staged)) {
      if (driver === "volumeDevices" || !isDirectory(at(`${staged}/${driver}`))) continue;
      // `pv/<name>` up to 1.23, `<driver>/<hash of the handle>` since.
      for (const name of names(`${staged}/${driver}`)) record(`${staged}/${driver}/${name}`, name);
    }
    recordBlockVolumes(`${staged}/volumeDevices`, names, record);
    return read(found);
  } catch (error) {
    if (error instanceof Unreadable) return failed(`kubelet's records of volumes cannot be read: ${error.message}`);
    throw error;
  }
}

/** `staging/<name>`, `publish/<name>/<pod>`, and `<name>/{dev,data}`. */
function recordBlockVolumes(
  dir: string,
  names: (path: string) => readonly string[],
  record: (path: string, name: string, podUid?: string, dataDir?: string) => void,
): void {
  for (const entry of names(dir)) {
    if (entry === "staging" || entry === "publish") {
      for (const name of names(`${dir}/${entry}`)) record(`${dir}/${entry}/${name}`, name);
    } else {
      record(`${dir}/${entry}`, entry, undefined, `${dir}/${entry}/data`);
    }
  }
}

function dataIn(path: string, shown: string): VolumeData | undefined {
  const file = readRegularFile(path);
  if (file.kind === "gone") return undefined;
  if (file.kind !== "content") throw new Unreadable(`${shown} ${file.reason}`);
  const result = v.safeParse(VolumeDataSchema, parseJson(file.text));
  if (!result.success) throw new Unreadable(`${shown} is not what kubelet writes`);
  const { driverName, volumeHandle, specVolID, attachmentID } = result.output;
  return {
    ...(driverName ? { driver: driverName } : {}),
    ...(volumeHandle ? { handle: volumeHandle } : {}),
    ...(specVolID ? { specName: specVolID } : {}),
    ...(attachmentID ? { attachment: attachmentID } : {}),
  };
}

function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
