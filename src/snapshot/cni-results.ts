import { absent, failed, type Oddity, read, type Source } from "../host/source.ts";
import { parseJson, property } from "../host/text.ts";
import { isFullId, type SandboxId } from "./ids.ts";
import { CORRUPT, isJsonObject, type Judgement, OK, readScratchDir, type ScratchDir } from "./scratch-files.ts";
import type { ResultFile } from "./types/cni.ts";

/** Every cache directory in which libcni may have left results: /var/lib/cni for the runtime, and multus' own. */
export interface ResultCaches extends Omit<ScratchDir, "dir"> {
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
