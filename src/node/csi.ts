import { posix } from "node:path";
import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, failedListing, listDirectory, statsOf } from "../host/safe-fs.ts";
import { absent, errorLabel, type Oddity, read, type Source } from "../host/source.ts";
import { provePath } from "../host/trusted-path.ts";
import { RuntimeError } from "../runtime/errors.ts";
import { RegistrationDefinition } from "../runtime/gen/pluginregistration/v1/registration.ts";
import { methodsOf, openChannel } from "../runtime/grpc.ts";
import type { CsiSocket } from "./types/snapshot.ts";

/** Kubelet's own mounts, beside the drivers' directories. */
const KUBELETS_OWN = "kubernetes.io";
const DEFAULT_SOCKET = "csi.sock";
/** The kernel's limit for a socket address. */
const LONGEST_ADDRESS = 107;
const MAX_DRIVERS = 100;

/** The sockets of all CSI drivers that were ever installed here, and whether a process listens on them. */
export async function readCsi(where: {
  readonly root: string;
  readonly kubeletRoot: string;
  readonly signal: AbortSignal;
}): Promise<Source<readonly CsiSocket[]>> {
  const plugins = `${where.kubeletRoot}/plugins`;
  const listing = listDirectory(resolveOnHost(where.root, plugins, "keep"));
  if (listing.kind === "absent") return absent(`there is no ${plugins}`);
  if (listing.kind === "refused") return failedListing(plugins, listing);
  const drivers = listing.entries.filter(({ name, kind }) => kind === "directory" && name !== KUBELETS_OWN);
  const oddities: Oddity[] = [];
  const dirs = drivers.slice(0, MAX_DRIVERS).map(({ name }) => `${plugins}/${name}`);
  const known = driversOf(dirs, await readRegistrations(where.root, where.kubeletRoot));
  const sockets = await Promise.all(
    dirs.map(async (dir): Promise<CsiSocket | undefined> => {
      const path = `${dir}/${socketNameIn(where.root, dir)}`;
      const state = await stateOfSocket(resolveOnHost(where.root, path, "keep"), where.signal);
      const { driver, registered } = known.get(dir) ?? { driver: posix.basename(dir), registered: false };
      if (state !== "unknown") return { driver, dir, path, state, registered };
      oddities.push({ path, reason: "whether a process listens on it is unknown" });
      return undefined;
    }),
  );
  return read(
    sockets.filter((socket) => socket !== undefined),
    oddities,
  );
}

/** Nearly all drivers use csi.sock; a few use their own name. */
function socketNameIn(root: string, dir: string): string {
  const names = entriesIn(resolveOnHost(root, dir, "keep")).map(({ name }) => name);
  return names.includes(DEFAULT_SOCKET)
    ? DEFAULT_SOCKET
    : (names.find((name) => name.endsWith(".sock")) ?? DEFAULT_SOCKET);
}

/**
 * The file alone proves nothing, because it survives a power cut. /proc/net/unix is no proof either, because it has the
 * path in the plugin's own container. A listening process accepts a connection; nothing is sent on it.
 */
export async function stateOfSocket(path: string, signal: AbortSignal): Promise<CsiSocket["state"] | "unknown"> {
  const stats = statsOf(path);
  if (stats === undefined) return "missing";
  if (!stats.isSocket() || Buffer.byteLength(path) > LONGEST_ADDRESS) return "unknown";
  return await new Promise((resolve) => {
    // Loaded on demand: the module takes 2 ms to load, and few nodes need it.
    const socket = process.getBuiltinModule("node:net").connect({ path, signal });
    const end = (state: CsiSocket["state"] | "unknown"): void => {
      socket.destroy();
      resolve(state);
    };
    socket.once("connect", () => end("listening"));
    socket.once("error", (error) => {
      const code = errorLabel(error);
      end(code === "ECONNREFUSED" ? "dead" : code === "ENOENT" ? "missing" : "unknown");
    });
  });
}

/** A plugin's socket in kubelet's plugins_registry. */
export interface Registration {
  /** From the socket's file name, as node-driver-registrar creates it: `<driver>-reg.sock`. */
  readonly fileName: string;
  /** From the plugin's answer; missing without one. */
  readonly driver?: string;
  /** The directory of the driver's own socket, on the node. */
  readonly dir?: string;
}

const SUFFIX = /(?:-reg)?\.sock$/;
const MAX_ASKED = 32;
/** A working plugin answers within milliseconds; a hung one must not delay the scan. */
const ANSWER_MS = 1000;
const DRIVER_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$/;

/** Which CSI drivers are registered with the kubelet of this root directory, with the same call that kubelet makes. */
export async function readRegistrations(root: string, kubeletRoot: string): Promise<readonly Registration[]> {
  const registry = `${kubeletRoot}/plugins_registry`;
  const entries = entriesIn(resolveOnHost(root, registry, "keep"));
  return await Promise.all(
    entries.slice(0, MAX_ASKED).map(async ({ name, kind }): Promise<Registration> => {
      const fileName = name.replace(SUFFIX, "");
      const path = `${registry}/${name}`;
      // A user who can replace the socket could answer in the driver's name.
      if (kind !== "other" || provePath(root, path).kind !== "trusted") return { fileName };
      return { fileName, ...(await infoOf(resolveOnHost(root, path, "keep"))) };
    }),
  );
}

/** An answer contains a few names. */
const MAX_BYTES = 64 * 1024;

const { getInfo } = methodsOf(RegistrationDefinition);

/** Kubelet's registration call: returns type, name and socket of the plugin. */
async function infoOf(path: string): Promise<Pick<Registration, "driver" | "dir">> {
  const channel = openChannel(path, { maxBytes: MAX_BYTES });
  try {
    const { type, name, endpoint } = await channel.unary(getInfo, {}, { timeoutMs: ANSWER_MS });
    if (type !== "CSIPlugin" || !DRIVER_NAME.test(name)) return {};
    const socket = endpoint.replace(/^unix:\/\//, "");
    return { driver: name, ...(socket.startsWith("/") ? { dir: posix.dirname(posix.normalize(socket)) } : {}) };
  } catch (error) {
    if (error instanceof RuntimeError) return {};
    throw error;
  } finally {
    channel.close();
  }
}

/** The drivers of these directories, if known: by answer, by name, or as the only one left. */
export function driversOf(
  dirs: readonly string[],
  registrations: readonly Registration[],
): ReadonlyMap<string, { readonly driver: string; readonly registered: boolean }> {
  const known = new Map<string, { readonly driver: string; readonly registered: boolean }>();
  const taken = new Set<Registration>();
  const take = (dir: string, driver: string, from: Registration): void => {
    known.set(dir, { driver, registered: true });
    taken.add(from);
  };
  for (const dir of dirs) {
    const answer = registrations.find((one) => one.driver !== undefined && one.dir === dir);
    const namesake = registrations.find(({ fileName }) => fileName.startsWith(posix.basename(dir)));
    if (answer?.driver !== undefined) take(dir, answer.driver, answer);
    else if (namesake !== undefined) take(dir, posix.basename(dir), namesake);
  }
  // A plugin that is down does not answer, and its directory may have any name.
  const nameless = dirs.filter((dir) => !known.has(dir));
  const silent = registrations.filter((one) => !taken.has(one) && one.driver === undefined);
  const [dir, ...otherDirs] = nameless;
  const [last, ...others] = silent;
  if (dir !== undefined && last !== undefined && otherDirs.length === 0 && others.length === 0)
    take(dir, last.fileName, last);
  return known;
}
