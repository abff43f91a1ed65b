import { closeSync, constants, fsyncSync, openSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { procText } from "../host/proc.ts";
import { entriesIn } from "../host/safe-fs.ts";
import { errorCode } from "../host/source.ts";

/** One attachment of one plugin: what a DEL is about. All three are plain names, or the launcher keeps no state. */
export interface AttachmentKey {
  readonly container: string;
  readonly interface: string;
  readonly plugin: string;
}

export function fileNameOf({ container, interface: name, plugin }: AttachmentKey): string {
  return `${container}@${name}@${plugin}`;
}

export function keyOfFileName(name: string): AttachmentKey | undefined {
  const [container = "", interfaceName = "", plugin = "", ...rest] = name.split("@");
  if (container === "" || container.startsWith(".") || plugin === "" || rest.length > 0) return undefined;
  return { container, interface: interfaceName, plugin };
}

/** The keys of the files in one of the directories; drafts are left out. */
export function keysIn(directory: string): readonly AttachmentKey[] {
  return entriesIn(directory).flatMap(({ name, kind }) => {
    const key = kind === "file" ? keyOfFileName(name) : undefined;
    return key === undefined ? [] : [key];
  });
}

/** Whole and durable, or an exception: a queued DEL is a promise to the runtime. */
export function writeStateFile(path: string, text: string): void {
  const draft = join(dirname(path), `.${process.pid}.${process.hrtime.bigint()}`);
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: "wx", flush: true });
    renameSync(draft, path);
  } catch (error) {
    removeFile(draft);
    throw error;
  }
  syncStateDirectory(dirname(path));
}

export function syncStateDirectory(path: string): void {
  const directory = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
}

/** The time that no clock step changes, and the boot that it counts from. */
export interface Moment {
  readonly boot: string;
  readonly uptimeSeconds: number;
}

export function momentNow(): Moment {
  return {
    boot: procText("/proc/sys/kernel/random/boot_id").trim(),
    uptimeSeconds: Number.parseFloat(procText("/proc/uptime")),
  };
}

/** Zero in another boot: what was counted before it starts again. */
export function secondsBetween(earlier: Moment, later: Moment): number {
  return earlier.boot === later.boot ? Math.max(0, later.uptimeSeconds - earlier.uptimeSeconds) : 0;
}
