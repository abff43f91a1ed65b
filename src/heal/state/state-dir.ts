import { renameSync, type Stats } from "node:fs";
import { chmod, lstat, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import * as v from "valibot";
import { readRegularFile } from "../../host/safe-fs.ts";
import { describeError, errorCode } from "../../host/source.ts";
import { parseJson, property } from "../../host/text.ts";
import { refusalIfFull, syncDirectory } from "./durable-files.ts";
import { type Outcome, ok, refuse } from "./outcome.ts";
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

export type StateDocument<T> =
  | { readonly kind: "none" }
  | { readonly kind: "read"; readonly value: T }
  | { readonly kind: "unreadable"; readonly problem: string };

const OWN_API_VERSION = "unghost.dev/v1";

/**
 * Reads a JSON document of the state directory. One that this version cannot read is renamed: the caller writes a new
 * one under the same name, and the version that wrote the old one may come back.
 */
export function readStateDocument<Schema extends v.GenericSchema>(
  path: string,
  schema: Schema,
  maxBytes?: number,
): StateDocument<v.InferOutput<Schema>> {
  const file = readRegularFile(path, maxBytes);
  if (file.kind === "gone") return { kind: "none" };
  if (file.kind !== "content") return { kind: "unreadable", problem: `${path} ${file.reason}` };
  const json = parseJson(file.text);
  const parsed = v.safeParse(schema, json);
  if (parsed.success) return { kind: "read", value: parsed.output };
  return { kind: "unreadable", problem: `${path} ${whyUnreadable(json)}; ${setAside(path)}` };
}

function whyUnreadable(json: unknown): string {
  const apiVersion = property(json, "apiVersion");
  return typeof apiVersion === "string" && apiVersion !== OWN_API_VERSION
    ? `was written by another version of unghost (apiVersion ${apiVersion})`
    : "is damaged, or was written by a newer version of unghost";
}

function setAside(path: string): string {
  const aside = `${path}.unreadable`;
  try {
    renameSync(path, aside);
    return `kept as ${aside}`;
  } catch {
    // A read-only directory: then nothing replaces the file either.
    return "it stays where it is";
  }
}
