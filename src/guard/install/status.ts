import { statSync } from "node:fs";
import { resolveOnHost } from "../../host/paths.ts";
import { entriesIn, fileText, inodeOf, statsOf } from "../../host/safe-fs.ts";
import { parseJson, property, stringIn } from "../../host/text.ts";
import { GUARD_BIN_DIR, GUARD_LAUNCHER, GUARD_STATE_DIR } from "../home.ts";
import { keysIn } from "../state-files.ts";
import { pluginDirsOn } from "./install.ts";
import { readReceipt } from "./receipt.ts";
import { withoutSlash } from "./search-path.ts";

export interface GuardStatus {
  readonly installed: boolean;
  /** The directories that the runtime searches now, as it reports them; undefined if it does not answer. */
  readonly searched: readonly string[] | undefined;
  /** The runtime searches ours first. False after `cni install` until it is restarted. */
  readonly inEffect: boolean;
  readonly networks: readonly GuardedNetwork[];
  /** Attachments with a record. */
  readonly attachments: number;
  readonly queue: number;
  /** Decisions in the log, by code. */
  readonly decisions: Readonly<Record<string, number>>;
}

export interface GuardedNetwork {
  readonly file: string;
  readonly network: string;
  readonly plugins: readonly GuardedPlugin[];
}

export interface GuardedPlugin {
  readonly name: string;
  /** What the runtime would run; undefined if it would find nothing. */
  readonly path: string | undefined;
  readonly guarded: boolean;
}

export interface StatusPlaces {
  readonly root: string;
  readonly confDir: string;
  readonly searched: readonly string[] | undefined;
}

export function guardStatus({ root, confDir, searched }: StatusPlaces): GuardStatus {
  const first = searched?.[0];
  return {
    installed: readReceipt(root) !== undefined && statsOf(place(root, GUARD_LAUNCHER)) !== undefined,
    searched,
    inEffect: first !== undefined && withoutSlash(first) === GUARD_BIN_DIR,
    networks: searched === undefined ? [] : networksIn(root, confDir, searched),
    attachments: keysIn(place(root, `${GUARD_STATE_DIR}/attachments`)).length,
    queue: keysIn(place(root, `${GUARD_STATE_DIR}/queue`)).length,
    decisions: decisionsIn(place(root, `${GUARD_STATE_DIR}/log`)),
  };
}

function networksIn(root: string, confDir: string, searched: readonly string[]): readonly GuardedNetwork[] {
  const names = entriesIn(place(root, confDir)).map(({ name }) => name);
  return names
    .filter((name) => /\.(?:conf|conflist|json)$/.test(name))
    .toSorted()
    .flatMap((name) => {
      const config = parseJson(fileText(place(root, `${confDir}/${name}`)));
      const network = stringIn(config, "name");
      if (network === undefined) return [];
      const chain = property(config, "plugins");
      const plugins = (Array.isArray(chain) ? chain : [config]).flatMap((plugin: unknown) => {
        const type = stringIn(plugin, "type");
        return type === undefined ? [] : [found(root, type, searched), ...delegatesOf(root, plugin, searched)];
      });
      return [{ file: `${confDir}/${name}`, network, plugins }];
    });
}

/** multus searches its own binDir before what it was given, which has no directory of ours if multus is guarded. */
function delegatesOf(root: string, plugin: unknown, searched: readonly string[]): readonly GuardedPlugin[] {
  const delegates = property(plugin, "delegates");
  if (!Array.isArray(delegates)) return [];
  const dirs = [
    stringIn(plugin, "binDir") ?? "/opt/cni/bin",
    ...searched.filter((dir) => withoutSlash(dir) !== GUARD_BIN_DIR),
  ];
  return delegates.flatMap((delegate: unknown) => {
    const chain = property(delegate, "plugins");
    return (Array.isArray(chain) ? chain : [delegate]).flatMap((one: unknown) => {
      const type = stringIn(one, "type");
      return type === undefined ? [] : [found(root, type, dirs)];
    });
  });
}

/** As libcni finds it: the first regular file of that name. */
function found(root: string, name: string, dirs: readonly string[]): GuardedPlugin {
  const launcher = inodeOf(place(root, GUARD_LAUNCHER));
  const path = dirs.map((dir) => `${withoutSlash(dir)}/${name}`).find((one) => isFile(place(root, one)));
  const guarded = path !== undefined && launcher !== undefined && inodeOf(place(root, path)) === launcher;
  return { name, path: guarded ? realPlugin(root, name, dirs) : path, guarded };
}

function realPlugin(root: string, name: string, dirs: readonly string[]): string | undefined {
  const others = [...dirs.filter((dir) => withoutSlash(dir) !== GUARD_BIN_DIR), ...pluginDirsOn(root)];
  return others.map((dir) => `${withoutSlash(dir)}/${name}`).find((one) => isFile(place(root, one)));
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    return false;
  }
}

function decisionsIn(path: string): Readonly<Record<string, number>> {
  const codes: Record<string, number> = {};
  for (const file of [`${path}.1`, path]) {
    for (const line of fileText(file, 4 * 1024 * 1024).split("\n")) {
      const code = stringIn(parseJson(line), "code");
      if (code !== undefined) codes[code] = (codes[code] ?? 0) + 1;
    }
  }
  return codes;
}

function place(root: string, path: string): string {
  return resolveOnHost(root, path, "follow");
}
