import { lstatSync } from "node:fs";
import { basename } from "node:path/posix";
import { resolveOnHost } from "../host/paths.ts";
import { failedListing, listDirectory } from "../host/safe-fs.ts";
import { absent, errorLabel, type Oddity, read, type Source } from "../host/source.ts";
import { driversOf, readRegistrations } from "./csi-registrations.ts";
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
      const { driver, registered } = known.get(dir) ?? { driver: basename(dir), registered: false };
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
  const names = namesIn(root, dir);
  return names.includes(DEFAULT_SOCKET)
    ? DEFAULT_SOCKET
    : (names.find((name) => name.endsWith(".sock")) ?? DEFAULT_SOCKET);
}

function namesIn(root: string, dir: string): readonly string[] {
  const listing = listDirectory(resolveOnHost(root, dir, "keep"));
  return listing.kind === "listed" ? listing.entries.map(({ name }) => name) : [];
}

/**
 * The file alone proves nothing, because it survives a power cut. /proc/net/unix is no proof either, because it has the
 * path in the plugin's own container. A listening process accepts a connection; nothing is sent on it.
 */
export async function stateOfSocket(path: string, signal: AbortSignal): Promise<CsiSocket["state"] | "unknown"> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
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
