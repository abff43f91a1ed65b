import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, fileText } from "../host/safe-fs.ts";
import { type Oddity, read, type Source } from "../host/source.ts";
import { parseJson, printable, stringIn } from "../host/text.ts";
import { provePath } from "../host/trusted-path.ts";
import { confFilesIn, pluginsIn } from "./cni-conf.ts";
import { readHostLocal } from "./host-local.ts";
import type { HostLocalNetwork } from "./types/cni.ts";

/** Where the network configurations of a node keep addresses. */
export interface AddressStores {
  /** Types of plugins and IPAM plugins. */
  readonly plugins: readonly string[];
  /** The `dataDir` of host-local, where it is not the default. */
  readonly dataDirs: readonly string[];
}

const MAX_FILES = 64;
/** A plugin of attached networks is named in the API alone. These leave their own directory among the configurations. */
const INSTALLED: Readonly<Record<string, string>> = { "whereabouts.d": "whereabouts" };

/** From every file of the directory, because multus' delegates have their own files. */
export function readAddressStores(root: string, confDir: string): AddressStores {
  const entries = entriesIn(resolveOnHost(root, confDir, "follow"));
  const files = confFilesIn(entries);
  const plugins = files.slice(0, MAX_FILES).flatMap((name) => {
    // A configuration that others can write must not choose which directories root opens.
    if (provePath(root, `${confDir}/${name}`).kind === "refused") return [];
    return pluginsIn(parseJson(fileText(resolveOnHost(root, `${confDir}/${name}`, "follow"))));
  });
  const dataDirs = plugins
    .filter((plugin) => stringIn(plugin, "type") === "host-local")
    .map((plugin) => stringIn(plugin, "dataDir") ?? "");
  const types = plugins.map((plugin) => printable(stringIn(plugin, "type") ?? ""));
  const installed = entries.flatMap(({ name }) => INSTALLED[name] ?? []);
  return {
    plugins: [...new Set([...types, ...installed])],
    dataDirs: [...new Set(dataDirs.filter((dir) => dir.startsWith("/")))],
  };
}

/** host-local's networks in its default directory and in those that configurations name. */
export async function readHostLocalDirs(
  where: { readonly root: string; readonly signal: AbortSignal },
  defaultDir: string,
  dataDirs: readonly string[],
): Promise<Source<readonly HostLocalNetwork[]>> {
  const networks: HostLocalNetwork[] = [];
  const oddities: Oddity[] = [];
  const others = dataDirs.map((dir) => dir.replace(/(?<=.)\/+$/, "")).filter((dir) => dir !== defaultDir);
  for (const dir of [defaultDir, ...others]) {
    const trust = dir === defaultDir ? { kind: "trusted" as const } : provePath(where.root, dir);
    if (trust.kind === "refused") {
      oddities.push({ path: dir, reason: `its leases were not read: ${trust.detail}. ${trust.next}` });
      continue;
    }
    const source = await readHostLocal({ ...where, dir });
    if (source.status === "failed" || (source.status === "absent" && others.length === 0)) return source;
    if (source.status !== "read") continue;
    networks.push(...source.value);
    oddities.push(...source.oddities);
  }
  return read(networks, oddities);
}
