import { lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import * as v from "valibot";
import { resolveOnHost } from "../host/paths.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { parseJson } from "../host/text.ts";
import { provePath } from "../host/trusted-path.ts";
import type { KeeperState } from "./keeper-state.ts";

/** In tmpfs, beside the agent's lock: gone after a reboot, and never on the disk for which the keeper waits. */
const STATE_FILE = "/run/unghost/keeper.json";
const PUBLISH_EVERY_MS = 5000;
/** A keeper that has not written for this long was killed or stopped. */
const STALE_MS = 30_000;

const StateSchema: v.GenericSchema<unknown, KeeperState> = v.object({
  directories: v.number(),
  filesSynced: v.number(),
  waiting: v.number(),
  syncingSeconds: v.number(),
  problems: v.array(
    v.variant("kind", [
      v.object({ kind: v.literal("unwatched"), dir: v.string() }),
      v.object({ kind: v.literal("unlisted"), dir: v.string(), reason: v.string() }),
      v.object({ kind: v.literal("unsynced"), dir: v.string(), code: v.string() }),
      v.object({ kind: v.literal("too-many"), kept: v.number() }),
    ]),
  ),
});

/** Lets `unghost doctor` read the state of this process's keeper. */
export function publishKeeper(hostRoot: string, keeper: { state(): KeeperState }): { close(): void } {
  const path = resolveOnHost(hostRoot, STATE_FILE, "keep");
  const publish = (): void => {
    try {
      writeState(path, keeper.state());
    } catch {
      // Files are still synced; doctor reports that no keeper runs.
    }
  };
  publish();
  const timer = setInterval(publish, PUBLISH_EVERY_MS).unref();
  return {
    close: () => {
      clearInterval(timer);
      rmSync(path, { force: true });
    },
  };
}

function writeState(path: string, state: KeeperState): void {
  const dir = dirname(path);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(dir);
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0) return;
  writeFileSync(`${path}.new`, JSON.stringify(state), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Returns undefined if no keeper runs on this node. The file must be writable by root only. */
export function publishedKeeper(hostRoot: string): KeeperState | undefined {
  if (provePath(hostRoot, STATE_FILE).kind !== "trusted") return undefined;
  const file = readRegularFile(resolveOnHost(hostRoot, STATE_FILE, "keep"));
  if (file.kind !== "content" || Math.abs(Date.now() - file.modifiedAt.getTime()) > STALE_MS) return undefined;
  const state = v.safeParse(StateSchema, parseJson(file.text));
  return state.success ? state.output : undefined;
}
