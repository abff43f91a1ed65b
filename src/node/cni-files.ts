import { type DirEntry, describeKind, type HostDir, readEachEntry, readRegularFile } from "../host/safe-fs.ts";
import { absent, failed, type Oddity, read, type Source } from "../host/source.ts";
import { parseJson, property } from "../host/text.ts";
import type { FileHealth, MultusCache, MultusFile, ResultFile, ScratchFile } from "./types/cni.ts";
import { isFullId, type SandboxId } from "./types/ids.ts";

/** The format of the files in a directory with one file per sandbox, by plugins or libcni. */
export interface ScratchFormat<Name extends { readonly sandboxId: SandboxId }> {
  readonly parseName: (name: string) => Name | undefined;
  /** Called only for files with content. */
  readonly judge: (text: string, name: Name) => Judgement;
  /** Other entries that belong there. */
  readonly ignore?: (entry: DirEntry) => boolean;
}

export type Judgement =
  | ({ readonly health: "ok" } & Details)
  | { readonly health: "corrupt" }
  | { readonly health: "odd"; readonly reason: string };

/** Further content of an intact file, for formats that have it. */
type Details = Pick<ResultFile, "addresses" | "hasConfig"> & Pick<MultusFile, "isMarker" | "strippedKeys">;

export const OK = { health: "ok" } satisfies Judgement;
export const CORRUPT = { health: "corrupt" } satisfies Judgement;

export async function readScratchDir<Name extends { readonly sandboxId: SandboxId }>(
  where: HostDir,
  format: ScratchFormat<Name>,
): Promise<Source<readonly (Name & ScratchFile)[]>> {
  return await readEachEntry(where, (entry, opened, passOver) => {
    if (format.ignore?.(entry)) return undefined;
    const name = format.parseName(entry.name);
    if (name === undefined) return passOver("its name is not one that belongs here");
    if (entry.kind !== "file") return passOver(`is ${describeKind(entry.kind)} where a file belongs`);
    const content = readRegularFile(opened);
    if (content.kind === "gone") return undefined;
    if (content.kind === "notRegular") return passOver(content.reason);

    const { reason, ...judged } = judgeRead(content, (text) => format.judge(text, name));
    if (reason !== undefined) passOver(reason);
    const { modifiedAt, size } = content;
    return { ...name, path: `${where.dir}/${entry.name}`, ...judged, modifiedAt, size };
  });
}

function judgeRead(
  content: { readonly kind: "content"; readonly text: string } | { readonly kind: "closed"; readonly reason: string },
  judge: (text: string) => Judgement,
): { readonly health: FileHealth; readonly reason?: string } & Details {
  if (content.kind === "closed") return { health: "odd", reason: content.reason };
  return content.text === "" ? { health: "empty" } : judge(content.text);
}

export function isJsonObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Every cache directory in which libcni may have left results: /var/lib/cni for the runtime, and multus' own. */
export interface ResultCaches extends Pick<HostDir, "root" | "signal"> {
  /** A directory that is not known yet is awaited after the others are read. */
  readonly cacheDirs: readonly (string | Promise<string>)[];
}

export async function readCniResults(caches: ResultCaches): Promise<Source<readonly ResultFile[]>> {
  const { cacheDirs, ...limits } = caches;
  const files: ResultFile[] = [];
  const oddities: Oddity[] = [];
  const missing: string[] = [];
  const done = new Set<string>();
  for (const named of cacheDirs) {
    const cacheDir = await named;
    if (done.has(cacheDir)) continue;
    done.add(cacheDir);
    const source = await readScratchDir(
      { ...limits, dir: `${cacheDir}/results` },
      { parseName: parseResultName, judge: judgeResult },
    );
    if (source.status === "failed") return failed(source.error.message, source.error.next);
    if (source.status === "absent") missing.push(source.reason);
    else {
      for (const file of source.value) files.push(file);
      oddities.push(...source.oddities);
    }
  }
  return missing.length === done.size ? absent(missing.join("; ")) : read(files, oddities);
}

interface ResultName {
  readonly network: string;
  readonly sandboxId: SandboxId;
  readonly interfaceName: string;
}

/**
 * `<network>-<id>-<interface>`, with the character sets that libcni enforces. Networks and interfaces may contain
 * dashes, but the match is unambiguous: an interface has at most 15 characters, so it cannot contain a second id.
 */
const RESULT_NAME = /^([A-Za-z0-9][A-Za-z0-9_.-]*)-([0-9a-f]{64})-([!-.0-9;-~]{1,15})$/;

export function parseResultName(name: string): ResultName | undefined {
  const [, network, id, interfaceName] = RESULT_NAME.exec(name) ?? [];
  if (!network || !id || !interfaceName || !isFullId(id)) return undefined;
  if (interfaceName === "." || interfaceName === "..") return undefined;
  return { network, sandboxId: id, interfaceName };
}

const VERSION = /^\d{1,4}\.\d{1,4}\.\d{1,4}$/;

/**
 * What libcni needs from the file on DEL: JSON whose kind is cniCacheV1 and whose `result` has a decodable cniVersion,
 * or else (caches before libcni 0.8) a bare result, whose cniVersion defaults to 0.1.0. Everything else makes libcni
 * before 1.2 fail DEL forever: "decoding version from network config: …". A cniCacheV1 without any result would pass
 * there, but no libcni writes one.
 */
export function judgeResult(text: string, name: Pick<ResultName, "sandboxId">): Judgement {
  const cached = parseJson(text);
  if (!isJsonObject(cached)) return CORRUPT;
  if (property(cached, "kind") !== "cniCacheV1") return hasVersion(cached) ? OK : CORRUPT;

  const result = property(cached, "result");
  if (!isJsonObject(result) || !hasVersion(result)) return CORRUPT;
  // nerdctl's container ids are `<namespace>-<id>`, which the file name alone would attribute to a sandbox.
  const owner = property(cached, "containerId");
  if (owner === undefined || owner === name.sandboxId) {
    const hasConfig = typeof property(cached, "config") === "string";
    return { health: "ok", ...addressesIn(result), ...(hasConfig ? { hasConfig } : {}) };
  }
  return { health: "odd", reason: "its content names another container than its file name" };
}

function addressesIn(result: object): { readonly addresses?: readonly string[] } {
  const ips = property(result, "ips");
  if (!Array.isArray(ips)) return {};
  const addresses = ips.map((ip) => property(ip, "address")).filter((address) => typeof address === "string");
  return addresses.length === 0 ? {} : { addresses };
}

function hasVersion(result: object): boolean {
  const version = property(result, "cniVersion");
  return version === undefined || version === "" || (typeof version === "string" && VERSION.test(version));
}

export const DEFAULT_MULTUS_DIR = "/var/lib/cni/multus";

/**
 * Not JSON, on purpose: since 4.0 multus treats an unparsable cache file as "cannot properly delete", calls no delegate
 * and reports success, so that the runtime can continue and release the name.
 */
export const MULTUS_MARKER = "unghost: the delegates of this sandbox are not to be called again\n";

/** `<cniDir>/<sandbox id>`: the delegates that multus called on ADD and must call again on DEL. */
export async function readMultusCache(where: HostDir): Promise<Source<MultusCache>> {
  const files = await readScratchDir(where, {
    parseName: (name) => (isFullId(name) ? { sandboxId: name } : undefined),
    judge: judgeMultusCache,
    // multus passes its own directory to libcni for its delegates' results.
    ignore: (entry) => entry.name === "results" && entry.kind === "directory",
  });
  return files.status === "read" ? read({ dir: where.dir, files: files.value }, files.oddities) : files;
}

/** A list of at least one delegate. multus reads the first element without a check and crashes on `[]` and `null`. */
export function judgeMultusCache(text: string): Judgement {
  if (text === MULTUS_MARKER) return { ...OK, isMarker: true };
  const delegates = parseJson(text);
  if (!Array.isArray(delegates) || delegates.length === 0 || !delegates.every(isJsonObject)) return CORRUPT;
  const strippedKeys = [...new Set(delegates.flatMap(strippedFrom))].sort();
  return strippedKeys.length === 0 ? OK : { ...OK, strippedKeys };
}

/**
 * multus 4.2.1 to 4.3.0 caches a file-based delegate twice: as read (`CNINetworkConfigList`, used by ADD) and reduced
 * to its known fields (`ConfList`, used by DEL).
 */
function strippedFrom(delegate: object): readonly string[] {
  const asRead = property(property(delegate, "CNINetworkConfigList"), "Plugins");
  const forDel = property(property(delegate, "ConfList"), "plugins");
  if (!Array.isArray(asRead) || !Array.isArray(forDel)) return [];
  return asRead.flatMap((plugin: unknown, index) => {
    const encoded = property(plugin, "Bytes");
    const config = typeof encoded === "string" ? parseJson(Buffer.from(encoded, "base64").toString("utf8")) : undefined;
    const reduced: unknown = forDel[index];
    if (!isJsonObject(config) || !isJsonObject(reduced)) return [];
    return Object.keys(config).filter((key) => !Object.hasOwn(reduced, key));
  });
}
