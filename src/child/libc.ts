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
