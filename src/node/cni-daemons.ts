import { posix } from "node:path";
import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, fileText, statsOf } from "../host/safe-fs.ts";
import { read, type Source, valueOr } from "../host/source.ts";
import { parseJson, printable, property, stringIn } from "../host/text.ts";
import { confFilesIn, multusSocketIn } from "./cni-conf.ts";
import { stateOfSocket } from "./csi.ts";
import type { ProcessTable } from "./process-table.ts";
import { findRuntimeProcess } from "./runtime-process.ts";
import type { CniDaemon } from "./types/cni.ts";
import type { Snapshot } from "./types/snapshot.ts";

/** The default sockets of daemons that CNI plugins connect to, if their configuration sets none. */
const DEFAULT_SOCKETS: Readonly<Record<string, string>> = {
  "kube-ovn": "/run/openvswitch/kube-ovn-daemon.sock",
  "cilium-cni": "/run/cilium/cilium.sock",
  antrea: "/run/antrea/cni.sock",
  "ovn-k8s-cni-overlay": "/run/ovn-kubernetes/cni/ovn-cni-server.sock",
  spiderpool: "/run/spidernet/spiderpool.sock",
};

const MAX_FILES = 20;
const MAX_DAEMONS = 8;
const MAX_CONF_BYTES = 2 * 1024 * 1024;
const PROBE_MS = 1000;

/** A healthy plugin call ends within seconds. */
const SLOW_PLUGIN_SECONDS = 5;

/** Whether a plugin is slow or a network call failed: only then the daemons are checked. */
export function needsCniDaemons({ processes, logs }: Snapshot): boolean {
  const plugins = valueOr(processes, undefined)?.plugins ?? [];
  if (plugins.some(({ ageSeconds }) => ageSeconds >= SLOW_PLUGIN_SECONDS)) return true;
  const failure =
    plugins.length > 0 ? /dial unix|not reachable over socket|deadline ?exceeded/i : /dial unix|over socket/;
  return (valueOr(logs, undefined)?.lines ?? []).some(({ text }) => failure.test(text));
}

/** Connects to each configured daemon, and sends nothing. */
export async function readCniDaemons(where: {
  readonly root: string;
  readonly confDir: string;
  readonly table: Source<ProcessTable>;
  readonly signal?: AbortSignal;
}): Promise<Source<readonly CniDaemon[]>> {
  const { root, table } = where;
  const sockets = [...daemonSockets(root, where.confDir)].slice(0, MAX_DAEMONS);
  const daemons = await Promise.all(
    sockets.map(async ([socket, plugins]): Promise<CniDaemon> => {
      const path = resolveOnHost(root, socket, "follow");
      const signal = AbortSignal.any([AbortSignal.timeout(PROBE_MS), ...(where.signal ? [where.signal] : [])]);
      const state = await stateOfSocket(path, signal);
      const since = statsOf(path)?.mtime;
      const listener =
        state === "listening" || state === "unknown"
          ? valueOr(await findRuntimeProcess({ root, socketPath: socket, table, signal }), undefined)
          : undefined;
      return { socket: printable(socket), plugins: [...plugins], state, since, listener };
    }),
  );
  return read(daemons);
}

/**
 * Socket -> the plugin types that connect to it, from every file of the directory, because delegates have their own
 * files.
 */
function daemonSockets(root: string, dir: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  const names = confFilesIn(entriesIn(resolveOnHost(root, dir, "follow")));
  for (const name of names.slice(0, MAX_FILES)) {
    const text = fileText(resolveOnHost(root, posix.join(dir, name), "follow"), MAX_CONF_BYTES);
    for (const { type, socket } of pluginsIn(parseJson(text), 0)) {
      const canonical = posix.normalize(socket).replace(/^\/var\/run\//, "/run/");
      found.set(canonical, (found.get(canonical) ?? new Set()).add(printable(type)));
    }
  }
  return found;
}

interface DialingPlugin {
  readonly type: string;
  readonly socket: string;
}

const DEEPEST = 4;

/** A plugin, the plugins of its chain and its delegates. */
function pluginsIn(conf: unknown, depth: number): readonly DialingPlugin[] {
  if (typeof conf !== "object" || conf === null || depth > DEEPEST) return [];
  const type = stringIn(conf, "type");
  const socket = type === undefined ? undefined : socketOf(type, conf);
  const nested = [property(conf, "plugins"), property(conf, "delegates")].flatMap((list) =>
    Array.isArray(list) ? list.flatMap((one: unknown) => pluginsIn(one, depth + 1)) : [],
  );
  return type === undefined || socket === undefined ? nested : [{ type, socket }, ...nested];
}

/** kube-ovn configures `server_socket`, multus `daemonSocketDir`; others use a fixed path. */
function socketOf(type: string, conf: object): string | undefined {
  const named = stringIn(conf, "server_socket");
  if (named?.startsWith("/")) return named;
  if (type === "multus-shim") return multusSocketIn(conf);
  return Object.hasOwn(DEFAULT_SOCKETS, type) ? DEFAULT_SOCKETS[type] : undefined;
}
