import { parseJson, property } from "../../host/json.ts";
import { type CniFailure, type CniPlace, cniDel } from "./cni-exec.ts";

/** A network as libcni cached it with its result: enough to take it down again without the runtime. */
export interface CachedNetwork {
  readonly name: string;
  readonly cniVersion: string;
  readonly plugins: readonly object[];
  readonly result: unknown;
  /** CNI_ARGS of the ADD. */
  readonly args?: string;
}

/** Reads libcni's cache file (`cniCacheV1`): the configuration is in it as base64, the result as JSON. */
export function parseCachedNetwork(text: string): CachedNetwork | undefined {
  const cached = parseJson(text);
  const encoded = property(cached, "config");
  if (typeof encoded !== "string") return undefined;
  const config = parseJson(Buffer.from(encoded, "base64").toString("utf8"));
  const name = property(config, "name");
  const cniVersion = property(config, "cniVersion");
  const listed = property(config, "plugins");
  const plugins = (Array.isArray(listed) ? listed : [config]).filter(
    (plugin): plugin is object => typeof property(plugin, "type") === "string",
  );
  if (typeof name !== "string" || plugins.length === 0) return undefined;
  const version = typeof cniVersion === "string" ? cniVersion : "0.2.0";
  const args = argsIn(property(cached, "cniArgs"));
  return {
    name,
    cniVersion: version,
    plugins,
    result: property(cached, "result"),
    ...(args === "" ? {} : { args }),
  };
}

/** libcni caches them as pairs. What would end a pair early is left out: it cannot have come from a runtime. */
function argsIn(pairs: unknown): string {
  if (!Array.isArray(pairs)) return "";
  return pairs
    .filter((pair): pair is [string, string] => Array.isArray(pair) && pair.length === 2 && pair.every(isPlainArg))
    .map(([key, value]) => `${key}=${value}`)
    .join(";");
}

function isPlainArg(text: unknown): boolean {
  return typeof text === "string" && !/[;=\0\n]/.test(text);
}

/** DEL through the whole chain, last plugin first, as libcni does it. Ends with the first that fails. */
export async function replayDel(
  network: CachedNetwork,
  containerId: string,
  interfaceName: string,
  place: CniPlace,
): Promise<CniFailure> {
  const { name, cniVersion, result, args } = network;
  for (const plugin of network.plugins.toReversed()) {
    const config = { ...plugin, name, cniVersion, ...(result === undefined ? {} : { prevResult: result }) };
    const failure = await cniDel(
      {
        plugin: String(property(plugin, "type")),
        containerId,
        interfaceName,
        config,
        ...(args === undefined ? {} : { args }),
      },
      place,
    );
    if (failure !== undefined) return failure;
  }
  return undefined;
}
