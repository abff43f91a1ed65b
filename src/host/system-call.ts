import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** Functions of the C library that the engine does not expose. Each returns an errno; 0 is success. */
export interface Libc {
  flock(fd: number, operation: number): number;
  umount2(path: string, flags: number): number;
  unlink(path: string): number;
  chroot(path: string): number;
  unshare(flags: number): number;
  setns(fd: number, kind: number): number;
}

interface Ffi {
  dlopen(library: string, symbols: Record<string, { args: string[]; returns: string }>): { symbols: Symbols };
  readonly read: { i32(pointer: unknown): number };
}
type Symbols = Record<string, (...args: readonly unknown[]) => unknown>;

/** musl also accepts glibc's name. */
const LIBRARY = "libc.so.6";
const INT = "i32";

let opened: Libc | undefined;

/** Undefined on an engine without FFI: Node, and bun without its compiler (`BUN_JSC_useJIT=0`). */
export function openLibc(): Libc | undefined {
  if (process.versions["bun"] === undefined) return undefined;
  try {
    opened ??= load(process.getBuiltinModule("bun:ffi") as unknown as Ffi);
    return opened;
  } catch {
    return undefined;
  }
}

function load(ffi: Ffi): Libc {
  const { symbols } = ffi.dlopen(LIBRARY, {
    flock: { args: [INT, INT], returns: INT },
    umount2: { args: ["ptr", INT], returns: INT },
    unlink: { args: ["ptr"], returns: INT },
    chroot: { args: ["ptr"], returns: INT },
    unshare: { args: [INT], returns: INT },
    setns: { args: [INT, INT], returns: INT },
    __errno_location: { args: [], returns: "ptr" },
  });
  const call = (name: string, ...args: readonly unknown[]): number => {
    if (symbols[name]?.(...args) === 0) return 0;
    return ffi.read.i32(symbols["__errno_location"]?.());
  };
  return {
    flock: (fd, operation) => call("flock", fd, operation),
    umount2: (path, flags) => call("umount2", cString(path), flags),
    unlink: (path) => call("unlink", cString(path)),
    chroot: (path) => call("chroot", cString(path)),
    unshare: (flags) => call("unshare", flags),
    setns: (fd, kind) => call("setns", fd, kind),
  };
}

function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}

/**
 * System calls that need a separate process, or an engine with its compiler: this executable makes them in a child. So
 * unghost needs neither flock(1) nor umount(8) nor chroot(8), which are missing in its own image and on Talos.
 */
export const SYSTEM_CALL = "system-call";

export type LockMode = "exclusive" | "shared";

/** Exit codes of a locking child, the same as those of flock(1). */
export const LOCK_BUSY = 1;

const LOCK_OPERATIONS: Readonly<Record<LockMode, number>> = { exclusive: 2, shared: 1 };
const LOCK_NONBLOCKING = 4;
const MNT_DETACH = 2;
const UMOUNT_NOFOLLOW = 8;
const CLONE_FS = 0x200;
const CLONE_NEWNS = 0x20000;
const EAGAIN = 11;
const EINTR = 4;

/** flock(2) without waiting: taken, held by another process, or the name of the error. */
export function tryFlock(libc: Libc, fd: number, mode: LockMode): "taken" | "busy" | { readonly error: string } {
  let errno = EINTR;
  for (let tries = 0; errno === EINTR && tries < 100; tries++) {
    errno = libc.flock(fd, LOCK_OPERATIONS[mode] | LOCK_NONBLOCKING);
  }
  if (errno === 0) return "taken";
  return errno === EAGAIN ? "busy" : { error: nameOf(errno) };
}

/** A child that takes the lock on its standard input, which belongs to the open file and so outlives the child. */
export function flockCommand(mode: LockMode): readonly string[] {
  return isBun() ? own("flock", mode) : ["flock", mode === "shared" ? "-s" : "-x", "-n", "0"];
}

/**
 * Like `umount --lazy`, without following a symbolic link. From a container it is done in the host's mount namespace,
 * because a mount that a container unmounts stays mounted on the host.
 */
export function unmountCommand(hostRoot: string, path: string): readonly string[] {
  return isBun() ? own("umount", hostRoot, path) : ["umount", "--lazy", join(hostRoot, path)];
}

/** From a container also in the host's mount namespace, because the container's mount of the host is read-only. */
export function unlinkCommand(hostRoot: string, path: string): readonly string[] {
  return isBun() ? own("unlink", hostRoot, path) : ["rm", "-f", "--", join(hostRoot, path)];
}

/**
 * Runs a program of the host from a container that has the host's root directory at `hostRoot`: in the mount namespace
 * of the host's process 1 if possible, else with `hostRoot` as its root directory.
 */
export function onHostCommand(hostRoot: string, command: readonly string[]): readonly string[] {
  return isBun() ? own("on-host", hostRoot, ...command) : ["chroot", hostRoot, ...command];
}

/** The environment for such a child: FFI needs the engine's compiler, which the agent disables. */
export function systemCallEnv(): NodeJS.ProcessEnv {
  const { BUN_JSC_useJIT: _withoutCompiler, ...rest } = process.env;
  return rest;
}

/** This program as a child that calls an exported function of a module; on Node the module is loaded from its file. */
export function ownCommand(call: string, module: string, exported: string): readonly string[] {
  return isBun()
    ? own(call)
    : [process.execPath, "-e", `import(${JSON.stringify(module)}).then((m) => m.${exported}())`];
}

function own(...args: readonly string[]): readonly string[] {
  return [process.execPath, SYSTEM_CALL, ...args];
}

function isBun(): boolean {
  return process.versions["bun"] !== undefined;
}

/** The child's part. Returns its exit code, or never returns if it executes another program. */
export function runSystemCall([call, ...args]: readonly string[]): number {
  const libc = openLibc();
  if (libc === undefined) return fail("this engine cannot call the C library");
  const [first = "", path = ""] = args;
  if (call === "flock" && (first === "shared" || first === "exclusive")) return lock(libc, first);
  if (call === "umount" && path !== "") {
    return ended(path, libc.umount2(pathOnHost(libc, first, path), MNT_DETACH | UMOUNT_NOFOLLOW));
  }
  if (call === "unlink" && path !== "") return ended(path, libc.unlink(pathOnHost(libc, first, path)));
  if (call === "on-host" && args.length > 1) return replaceOnHost(libc, first, args.slice(1));
  return fail(`${SYSTEM_CALL} is unghost's own: run one of its commands instead`);
}

function lock(libc: Libc, mode: LockMode): number {
  const answer = tryFlock(libc, 0, mode);
  if (typeof answer === "object") return fail(answer.error);
  return answer === "taken" ? 0 : LOCK_BUSY;
}

function replaceOnHost(libc: Libc, hostRoot: string, [file = "", ...args]: readonly string[]): number {
  const refusal = enterMountNamespace(libc, `${hostRoot}/proc/1/ns/mnt`);
  if (refusal !== undefined) {
    const errno = libc.chroot(hostRoot);
    if (errno !== 0) return fail(`${hostRoot}: neither setns (${refusal}) nor chroot (${nameOf(errno)})`);
  }
  try {
    process.chdir("/");
    process.execve?.(file, [file, ...args], process.env);
  } catch (error) {
    return fail(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  return fail(`${file} could not be executed`);
}

/** The path to use from here on: in the host's mount namespace if it may be entered, else below `hostRoot`. */
function pathOnHost(libc: Libc, hostRoot: string, path: string): string {
  if (hostRoot === "/") return path;
  return enterMountNamespace(libc, `${hostRoot}/proc/1/ns/mnt`) === undefined ? path : join(hostRoot, path);
}

/** Returns undefined on success. The engine has threads, and only a thread with its own fs attributes may enter. */
function enterMountNamespace(libc: Libc, file: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  try {
    const errno = libc.unshare(CLONE_FS) || libc.setns(fd, CLONE_NEWNS);
    return errno === 0 ? undefined : nameOf(errno);
  } finally {
    closeSync(fd);
  }
}

function ended(what: string, errno: number): number {
  return errno === 0 ? 0 : fail(`${what}: ${nameOf(errno)}`);
}

function fail(reason: string): number {
  process.stderr.write(`${reason}\n`);
  return 2;
}

function nameOf(errno: number): string {
  try {
    // On demand: every command starts with this module, and node:util takes a millisecond to load.
    return process.getBuiltinModule("node:util").getSystemErrorName(-errno);
  } catch {
    return `error ${errno}`;
  }
}
