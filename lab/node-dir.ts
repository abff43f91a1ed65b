import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CgroupPart, removeCgroups } from "./cgroup.ts";
import { unmountBelow } from "./loop-disk.ts";
import { identify, isAlive, killProcess, type ProcessIdentity } from "./process-identity.ts";

/**
 * The directory with everything of a node on this machine: its disks, its boot id, and what is needed for a cleanup if
 * its owner is gone. The owner is part of the name, so that it is always known.
 */
export interface NodeDir {
  readonly id: string;
  readonly path: string;
  readonly owner: ProcessIdentity;
}

const PREFIX = "unghost-lab";
const NAME = /^unghost-lab-(\d+)-(\d+)-([0-9a-f]{6})$/;
const CLEAR_MS = 10_000;
const STEP_MS = 10;

export async function createNodeDir(): Promise<NodeDir> {
  const owner = identify(process.pid);
  if (owner === undefined) throw new Error("could not read this process's own start time from /proc");
  const id = randomBytes(3).toString("hex");
  const path = join(tmpdir(), `${PREFIX}-${owner.pid}-${owner.startTicks}-${id}`);
  await mkdir(path, { mode: 0o700 });
  return { id, path, owner };
}

export function cgroupName(dir: NodeDir): string {
  return `${PREFIX}-${dir.owner.pid}-${dir.owner.startTicks}-${dir.id}`;
}

/** Written before the cgroups are created and before a boot, so that everything that exists is recorded. */
export function recordCgroups(dir: NodeDir, parts: readonly CgroupPart[]): void {
  writeFileSync(join(dir.path, "cgroups.json"), JSON.stringify(parts));
}

export function recordInit(dir: NodeDir, init: ProcessIdentity): void {
  writeFileSync(join(dir.path, "init.json"), JSON.stringify(init));
}

/** Ends the node and removes every trace of it. Does not need the event loop, because a dying process calls it, too. */
export function clearNodeDir(dir: NodeDir): void {
  const init = readRecord<ProcessIdentity>(dir, "init.json");
  const cgroups = readRecord<readonly CgroupPart[]>(dir, "cgroups.json") ?? [];
  if (init !== undefined) killProcess(init);
  const end = performance.now() + CLEAR_MS;
  while ((init !== undefined && isAlive(init)) || !removeCgroups(cgroups)) {
    if (performance.now() > end) {
      const where = cgroups.map((part) => part.path).join(", ");
      throw new Error(`lab node ${dir.id} could not be cleared away: processes are left in ${where}`);
    }
    pause(STEP_MS);
  }
  unmountBelow(dir.path);
  rmSync(dir.path, { recursive: true, force: true, maxRetries: 3 });
}

export interface Sweep {
  readonly removed: readonly string[];
  /** Nodes that could not be removed, and why. */
  readonly stuck: readonly { readonly id: string; readonly reason: string }[];
}

/** Removes nodes whose owner died without doing so. */
export function sweepLeftovers(): Sweep {
  const removed: string[] = [];
  const stuck: { id: string; reason: string }[] = [];
  for (const dir of nodeDirs()) {
    if (isAlive(dir.owner)) continue;
    try {
      clearNodeDir(dir);
      removed.push(dir.id);
    } catch (error) {
      stuck.push({ id: dir.id, reason: (error as Error).message });
    }
  }
  return { removed, stuck };
}

function nodeDirs(): readonly NodeDir[] {
  const dirs: NodeDir[] = [];
  for (const name of readdirSync(tmpdir())) {
    const match = NAME.exec(name);
    const [, pid, startTicks, id] = match ?? [];
    if (pid === undefined || startTicks === undefined || id === undefined) continue;
    const path = join(tmpdir(), name);
    // The directory for temporary files is shared: root does not remove files of other users.
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined || stat.uid !== process.getuid?.()) continue;
    dirs.push({ id, path, owner: { pid: Number(pid), startTicks } });
  }
  return dirs;
}

function readRecord<T>(dir: NodeDir, file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(join(dir.path, file), "utf8")) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
