import type { Stats } from "node:fs";
import { chmod, lstat, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { describeError, errorCode } from "../../host/source.ts";
import { type Outcome, ok, refuse } from "../outcome.ts";
import { refusalIfFull } from "./disk-space.ts";
import { syncDirectory } from "./durable-files.ts";
import { type StateDir, stateDirLayout } from "./state-layout.ts";

/** Checks without creating anything. Returns undefined if unghost has never changed anything here. */
export async function findStateDir(root: string, uid: number): Promise<Outcome<StateDir | undefined>> {
  const layout = stateDirLayout(root);
  try {
    const objection = objectionTo(layout.root, await lstat(layout.root), uid);
    return objection ?? ok(layout);
  } catch (thrown) {
    return errorCode(thrown) === "ENOENT" ? ok(undefined) : cannotUse(layout.root, thrown);
  }
}

/** Prepares the state directory for writing, or returns why it is not trusted. */
export async function openStateDir(root: string, uid: number): Promise<Outcome<StateDir>> {
  const layout = stateDirLayout(root);
  try {
    await mkdir(dirname(layout.root), { recursive: true });
    for (const directory of [layout.root, layout.quarantine]) {
      const objection = await ensureDirectory(directory, uid);
      if (objection !== undefined) return objection;
    }
  } catch (thrown) {
    return refusalIfFull(layout.root, thrown) ?? cannotUse(layout.root, thrown);
  }
  return ok(layout);
}

async function ensureDirectory(path: string, uid: number): Promise<ReturnType<typeof refuse> | undefined> {
  try {
    await mkdir(path, { mode: 0o700 });
    await syncDirectory(dirname(path));
  } catch (thrown) {
    if (errorCode(thrown) !== "EEXIST") throw thrown;
  }
  const stats = await lstat(path);
  const objection = objectionTo(path, stats, uid);
  if (objection !== undefined) return objection;
  // A hostPath volume of type DirectoryOrCreate has mode 0755; quarantined files are private.
  if ((stats.mode & 0o077) !== 0) await chmod(path, 0o700);
  return undefined;
}

function objectionTo(path: string, stats: Stats, uid: number): ReturnType<typeof refuse> | undefined {
  if (stats.isSymbolicLink()) {
    return refuse(
      `The state directory ${path} is a symbolic link, which unghost does not follow.`,
      "Give the directory that it points to with --state-dir.",
    );
  }
  if (!stats.isDirectory()) {
    return refuse(`The state directory ${path} is not a directory.`, "Move it away, or choose another --state-dir.");
  }
  if (stats.uid !== uid) {
    return refuse(
      `The state directory ${path} belongs to user ${stats.uid}, but unghost runs as user ${uid}.`,
      `Run unghost as its owner, or hand it over with chown ${uid} ${path} once you trust what is in it.`,
    );
  }
  if ((stats.mode & 0o022) !== 0) {
    return refuse(
      `The state directory ${path} can be written by others (mode ${(stats.mode & 0o7777).toString(8)}).`,
      `Check what is in it, then run chmod 0700 ${path}.`,
    );
  }
  return undefined;
}

function cannotUse(path: string, thrown: unknown): ReturnType<typeof refuse> {
  return refuse(
    `The state directory ${path} cannot be used: ${describeError(thrown)}.`,
    "Without a journal nothing is changed. Repair it, or choose another --state-dir.",
  );
}
