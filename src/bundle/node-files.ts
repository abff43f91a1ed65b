import {
  CNI_CONF_DIRS,
  CRIO_CONFIG,
  NODE_DIRS,
  OWN_CONFIGS,
  OWN_CONTAINERDS,
  PLAIN_CONTAINERD,
  placesAt,
} from "../host/distributions.ts";
import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, readRegularFile } from "../host/safe-fs.ts";
import { type Source, valueOr } from "../host/source.ts";
import { readLogs } from "../node/logs.ts";
import type { LogFacts } from "../node/types/snapshot.ts";
import { redactConfig, redactText } from "./redact.ts";
import type { Member } from "./tar.ts";

/** Each is a few kilobytes on every known node. */
const MAX_CONFIG_BYTES = 128 * 1024;
const MAX_CONFIGS = 60;
/** Of each log: its newest lines. */
const MAX_LOG_CHARACTERS = 512 * 1024;

export interface NodeFiles {
  readonly members: readonly Member[];
  /** Why a file that exists is missing. */
  readonly leftOut: readonly string[];
}

/** The newest lines of the runtime's and kubelet's logs, whatever they are about. */
export async function logFiles(root: string, endpoint: string, signal: AbortSignal): Promise<NodeFiles> {
  const sources = placesAt(endpoint.replace(/^unix:\/\//, ""));
  const read: Source<LogFacts> = await readLogs({ root, sources, signal, isRelevantLine: () => true });
  const byPlace = Map.groupBy(valueOr(read, { places: [], lines: [] }).lines, ({ place }) => place);
  const members = [...byPlace].map(([place, lines]) => {
    const text = lines.map((line) => redactText(line.text)).join("\n");
    return { name: `logs/${fileName(place)}.log`, text: `${text.slice(-MAX_LOG_CHARACTERS)}\n` };
  });
  const oddities = read.status === "read" ? read.oddities : [];
  return { members, leftOut: oddities.map(({ path, reason }) => `${path}: ${reason}`) };
}

function fileName(place: string): string {
  return place
    .replaceAll(/[^\w.-]+/g, "_")
    .replace(/^_/, "")
    .slice(-60);
}

const NODE_CONFIGS = [
  ...OWN_CONTAINERDS.map(({ config }) => config),
  PLAIN_CONTAINERD.config,
  CRIO_CONFIG.file,
  "/etc/crictl.yaml",
  ...OWN_CONFIGS,
  ...NODE_DIRS.map((dir) => `${dir}/config.yaml`),
];
const CONFIG_DIRS = ["/etc/containerd/conf.d", CRIO_CONFIG.dropIns, ...CNI_CONF_DIRS];
/** No `.kubeconfig`: CNI plugins keep one beside their configuration. */
const CONFIG_NAME = /\.(?:toml|conf|conflist|json|yaml)$/;

/** The configuration of runtime, kubelet and network, without what may be a secret. */
export function nodeConfigs(root: string, own: string): NodeFiles {
  const inDirs = CONFIG_DIRS.flatMap((dir) =>
    entriesIn(resolveOnHost(root, dir, "follow"))
      .filter(({ kind, name }) => kind === "file" && CONFIG_NAME.test(name))
      .map(({ name }) => `${dir}/${name}`),
  );
  const members: Member[] = [];
  const leftOut: string[] = [];
  for (const path of new Set([own, ...NODE_CONFIGS, ...inDirs])) {
    const file = readRegularFile(resolveOnHost(path === own ? "/" : root, path, "follow"), MAX_CONFIG_BYTES);
    const name = `config${path}`;
    if (file.kind === "gone") continue;
    if (file.kind !== "content") leftOut.push(`${path}: it ${file.reason}`);
    else if (members.length === MAX_CONFIGS || name.length > 95)
      leftOut.push(`${path}: too many files, or too long a name`);
    else members.push({ name, text: redactConfig(file.text) });
  }
  return { members, leftOut };
}
