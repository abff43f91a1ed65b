import { closeSync, constants, fsyncSync, lstatSync, openSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { procText } from "../host/proc.ts";
import { entriesIn, statsOf } from "../host/safe-fs.ts";
import { describeError, errorCode } from "../host/source.ts";
import { provePath } from "../host/trusted-path.ts";

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

/** Why the state is not used: others could have written it, and the paths of programs that are run are in it. */
export function distrustOf(stateDir: string, directories: readonly string[]): string | undefined {
  for (const path of [stateDir, ...directories.map((name) => join(stateDir, name))]) {
    const trust = provePath("/", path);
    if (trust.kind === "refused") return `${trust.detail}. ${trust.next}`;
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) return `${path} is a link. Remove it.`;
  }
  return undefined;
}

/** Whole and durable, or an exception: a queued DEL is a promise to the runtime. */
export function writeFileDurably(path: string, text: string): void {
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

/**
 * The plugin has done the DEL of this attachment. The attachment goes after the mark: without both, a DEL that comes in
 * between would be one of an ADD that never completed.
 */
export function markReleased(stateDir: string, key: AttachmentKey): void {
  try {
    writeFileSync(join(stateDir, "released", fileNameOf(key)), "", { mode: 0o600 });
  } catch (error) {
    process.stderr.write(`unghost CNI guard: a released attachment could not be marked: ${describeError(error)}\n`);
  }
  removeFile(join(stateDir, "attachments", fileNameOf(key)));
}

export function isReleased(stateDir: string, key: AttachmentKey): boolean {
  return statsOf(join(stateDir, "released", fileNameOf(key))) !== undefined;
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
