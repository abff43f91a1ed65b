import { CONTAINERD_ROOTS } from "../host/distributions.ts";
import { resolveOnHost } from "../host/paths.ts";
import { listDirectory, readRegularFile } from "../host/safe-fs.ts";
import { absent, read, type Source } from "../host/source.ts";
import { parseJson, property, stringIn } from "../host/text.ts";
import { Any } from "../runtime/gen/google/protobuf/any.ts";
import { type BoltBucket, readBolt, type Wanted } from "./bolt/read-bolt.ts";
import { readStable } from "./bolt/stable-file.ts";
import { isJsonObject } from "./cni-files.ts";
import { parseSandboxMetadata } from "./containerd-facts.ts";
import type { SandboxRecord } from "./types/runtime.ts";
import type { BrokenStatusFile, MetadataFile, StoredContainer, StoredRecords } from "./types/snapshot.ts";

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
  const stored = readStable(resolveOnHost(hostRoot, path, "follow"), path, (source) => {
    if (source.size === 0) return { damage: [], isEmpty: true, ...storedRecords(NOTHING) };
    const { root: bucket, damage } = readBolt(source, neededRecords);
    return { damage, isEmpty: false, ...storedRecords(bucket) };
  });
  if (stored.status !== "read") return stored;
  return read({ path, ...stored.value, ...containerDirs(hostRoot, root) });
}

function containerDirs(hostRoot: string, root: string): Pick<MetadataFile, "containerDirs" | "brokenStatusFiles"> {
  const dir = `${root}/${CONTAINERS_IN_ROOT}`;
  const listing = listDirectory(resolveOnHost(hostRoot, dir, "follow"));
  if (listing.kind === "refused") return { containerDirs: undefined };
  const names = listing.kind === "listed" ? listing.entries.map(({ name }) => name) : [];
  const broken = names.flatMap((name) => brokenStatusFile(hostRoot, name, `${dir}/${name}/status`));
  return { containerDirs: new Set(names), brokenStatusFiles: broken.length === 0 ? undefined : broken };
}

/** The CRI plugin's checkpoint of a container's state: `{"Version":"v1","Status":{…}}`. */
function brokenStatusFile(hostRoot: string, id: string, path: string): readonly BrokenStatusFile[] {
  const file = readRegularFile(resolveOnHost(hostRoot, path, "follow"));
  if (file.kind !== "content" || isJsonObject(parseJson(file.text))) return [];
  const health = file.text === "" ? "empty" : "corrupt";
  return [{ containerId: id, path, health, modifiedAt: file.modifiedAt }];
}

const NOTHING = { values: new Map(), buckets: new Map() } as const;

const NAMESPACE_PATH = ["v1", "k8s.io"] as const;
const STORES: readonly string[] = ["containers", "sandboxes", "leases"];
/** The fields of each record; the OCI spec, half of the file, is skipped. */
const FIELDS: readonly string[] = ["createdat", "labels", "extensions"];

/** The part of the file that storedRecords needs. */
export const neededRecords: Wanted = (path) => {
  const [version, namespace, store, , field] = path;
  if (version !== NAMESPACE_PATH[0]) return false;
  if (namespace !== undefined && namespace !== NAMESPACE_PATH[1]) return false;
  if (store !== undefined && !STORES.includes(store)) return false;
  return field === undefined || FIELDS.includes(field);
};

export function storedRecords(root: BoltBucket): StoredRecords {
  const kubernetes = root.buckets.get(NAMESPACE_PATH[0])?.buckets.get(NAMESPACE_PATH[1]);
  const entriesOf = (store: string) => [...(kubernetes?.buckets.get(store)?.buckets ?? [])];
  return {
    records: entriesOf("containers").map(([id, bucket]) => containerIn(id, bucket)),
    sandboxes: entriesOf("sandboxes").map(([id, bucket]) => sandboxIn(id, bucket)),
    leases: entriesOf("leases").map(([id, bucket]) => ({ id, createdAt: createdAtIn(bucket) })),
  };
}

const SANDBOX_EXTENSION = "io.cri-containerd.sandbox.metadata";
const CONTAINER_EXTENSION = "io.cri-containerd.container.metadata";
/** Of the 2.x sandbox store. */
const STORE_EXTENSION = "metadata";

function containerIn(id: string, bucket: BoltBucket): StoredContainer {
  const common = recordIn(id, bucket);
  switch (common.labels["io.cri-containerd.kind"]) {
    case "sandbox":
      return { ...common, kind: "sandbox", sandbox: extensionIn(bucket, SANDBOX_EXTENSION, parseSandboxMetadata) };
    case "container":
      return { ...common, kind: "container", container: extensionIn(bucket, CONTAINER_EXTENSION, parseContainer) };
    default:
      return { ...common, kind: "other" };
  }
}

function sandboxIn(id: string, bucket: BoltBucket): SandboxRecord {
  return { ...recordIn(id, bucket), sandbox: extensionIn(bucket, STORE_EXTENSION, parseSandboxMetadata) };
}

function recordIn(id: string, bucket: BoltBucket): SandboxRecord {
  const labels = bucket.buckets.get("labels")?.values ?? [];
  return {
    id,
    createdAt: createdAtIn(bucket),
    labels: Object.fromEntries([...labels].map(([key, value]) => [key, decoder.decode(value)])),
  };
}

function createdAtIn(bucket: BoltBucket): Date | undefined {
  const bytes = bucket.values.get("createdat");
  return bytes === undefined ? undefined : parseGoTime(bytes);
}

/** `{"Version":"v1","Metadata":{"ID":…,"Name":…,"SandboxID":…,"Config":…}}` */
function parseContainer(json: Uint8Array): StoredContainer["container"] {
  const metadata = property(parseJson(decoder.decode(json)), "Metadata");
  const name = stringIn(metadata, "Name");
  const sandboxId = stringIn(metadata, "SandboxID");
  return name === undefined || sandboxId === undefined ? undefined : { name, sandboxId };
}

/** Extensions are stored as protobuf's Any: the name of a type and its bytes. */
function extensionIn<T>(bucket: BoltBucket, key: string, parse: (json: Uint8Array) => T): T | undefined {
  const bytes = bucket.buckets.get("extensions")?.values.get(key);
  if (bytes === undefined) return undefined;
  try {
    return parse(Any.decode(bytes).value);
  } catch {
    // Not protobuf. The runtime cannot read it either, and treats the record as one without metadata.
    return undefined;
  }
}

const decoder = new TextDecoder();

/** Seconds between the first of January of year 1, where Go counts from, and 1970. */
const SECONDS_TO_UNIX = 62_135_596_800n;
/** The range of Date. */
const MAX_DATE_MS = 8_640_000_000_000_000;

/**
 * A time in Go's MarshalBinary format: version, seconds since year 1, nanoseconds, zone offset in minutes. The zone
 * only affects formatting.
 */
export function parseGoTime(bytes: Uint8Array): Date | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = LENGTH_OF_VERSION.get(bytes[0] ?? 0);
  if (length === undefined || bytes.length !== length) return undefined;
  const seconds = view.getBigInt64(1) - SECONDS_TO_UNIX;
  // Rounded like timestamps in messages, so that both give the same millisecond.
  const ms = Number(seconds) * 1000 + view.getInt32(9) / 1_000_000;
  return Math.abs(ms) > MAX_DATE_MS ? undefined : new Date(ms);
}

/** The second version adds the seconds of the zone's offset. */
const LENGTH_OF_VERSION: ReadonlyMap<number, number> = new Map([
  [1, 15],
  [2, 16],
]);
