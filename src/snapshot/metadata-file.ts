import { CONTAINERD_ROOTS } from "../host/distributions/index.ts";
import { resolveOnHost } from "../host/paths.ts";
import { listDirectory } from "../host/safe-fs.ts";
import { absent, failed, read, type Source } from "../host/source.ts";
import { readBolt } from "./bolt/read-bolt.ts";
import { readStable } from "./bolt/stable-file.ts";
import { neededRecords, storedRecords } from "./metadata-records.ts";
import type { MetadataFile } from "./types/offline.ts";

const FILE_IN_ROOT = "io.containerd.metadata.v1.bolt/meta.db";
/** The same name in 2.x, although its CRI plugins are renamed. */
const CONTAINERS_IN_ROOT = "io.containerd.grpc.v1.cri/containers";

/** Reads the database of the given root, or of the first distribution that has one. Never writes, locks or throws. */
export function readMetadataFile(where: {
  readonly hostRoot: string;
  readonly containerdRoot: string | undefined;
}): Source<MetadataFile> {
  const roots = where.containerdRoot === undefined ? CONTAINERD_ROOTS : [where.containerdRoot];
  for (const root of roots) {
    const source = readOne(where.hostRoot, root);
    if (source.status !== "absent") return source;
  }
  return absent(`there is no ${FILE_IN_ROOT} below ${roots.join(", ")}`);
}

function readOne(hostRoot: string, root: string): Source<MetadataFile> {
  const path = `${root}/${FILE_IN_ROOT}`;
  const reading = readStable(resolveOnHost(hostRoot, path, "follow"), (source) => {
    if (source.size === 0) return { damage: [], isEmpty: true, ...storedRecords(NOTHING) };
    const { root: bucket, damage } = readBolt(source, neededRecords);
    return { damage, isEmpty: false, ...storedRecords(bucket) };
  });
  switch (reading.kind) {
    case "read":
      return read({ path, ...reading.value, containerDirs: containerDirs(hostRoot, root) });
    case "absent":
      return absent(`there is no ${path}`);
    case "refused":
      return failed(`${path} ${reading.reason}`, reading.next);
  }
}

function containerDirs(hostRoot: string, root: string): ReadonlySet<string> | undefined {
  const listing = listDirectory(resolveOnHost(hostRoot, `${root}/${CONTAINERS_IN_ROOT}`, "follow"));
  if (listing.kind === "refused") return undefined;
  return new Set(listing.kind === "listed" ? listing.entries.map(({ name }) => name) : []);
}

const NOTHING = { values: new Map(), buckets: new Map() } as const;
