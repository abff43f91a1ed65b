import { posix } from "node:path";
import { resolveOnHost } from "../host/paths.ts";
import { listDirectory } from "../host/safe-fs.ts";
import { provePath } from "../host/trusted-path.ts";
import { RuntimeError } from "../runtime/errors.ts";
import { InfoRequest, PluginInfo } from "../runtime/gen/pluginregistration/v1/registration.ts";
import { type CallOptions, method, openChannel } from "../runtime/grpc.ts";

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
  const listing = listDirectory(resolveOnHost(root, registry, "keep"));
  if (listing.kind !== "listed") return [];
  return await Promise.all(
    listing.entries.slice(0, MAX_ASKED).map(async ({ name, kind }): Promise<Registration> => {
      const fileName = name.replace(SUFFIX, "");
      const path = `${registry}/${name}`;
      // A user who can replace the socket could answer in the driver's name.
      if (kind !== "other" || provePath(root, path).kind !== "trusted") return { fileName };
      return { fileName, ...(await infoOf(resolveOnHost(root, path, "keep"))) };
    }),
  );
}

async function infoOf(path: string): Promise<Pick<Registration, "driver" | "dir">> {
  try {
    const { type, name, endpoint } = await askPluginInfo(path, { timeoutMs: ANSWER_MS });
    if (type !== "CSIPlugin" || !DRIVER_NAME.test(name)) return {};
    const socket = endpoint.replace(/^unix:\/\//, "");
    return { driver: name, ...(socket.startsWith("/") ? { dir: posix.dirname(posix.normalize(socket)) } : {}) };
  } catch (error) {
    if (error instanceof RuntimeError) return {};
    throw error;
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

/** An answer contains a few names. */
const MAX_BYTES = 64 * 1024;

const getInfo = method("pluginregistration.Registration", "GetInfo", InfoRequest, PluginInfo);

/** Kubelet's registration call: returns type, name and socket of the plugin. Throws RuntimeError. */
async function askPluginInfo(path: string, options: CallOptions): Promise<PluginInfo> {
  const channel = openChannel(path, { maxBytes: MAX_BYTES });
  try {
    return await channel.unary(getInfo, {}, options);
  } finally {
    channel.close();
  }
}
