import { existsSync } from "node:fs";
import { inBackground } from "../background-program.ts";
import type { LabNode } from "../node.ts";
import { until } from "../poll.ts";

/** A FUSE server in Python, for it has to be there on every machine: speaks the protocol for one directory with a file. */
const SERVER = `
import ctypes, os, struct, sys
LOOKUP, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, STATX = 1, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29, 52
ENOSYS = 38
NAMES = {"lookup": LOOKUP, "getattr": GETATTR, "open": OPEN, "read": READ, "statfs": STATFS, "opendir": OPENDIR, "readdir": READDIR, "release": RELEASE, "releasedir": RELEASEDIR, "flush": FLUSH}
point, last, answered = sys.argv[1], sys.argv[2], {NAMES[name] for name in sys.argv[3:]}
device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
if libc.mount(b"hung", point.encode(), b"fuse.hung", 0, options.encode()) != 0:
    raise OSError(ctypes.get_errno(), "mount")
def attributes(node):
    mode = 0o40755 if node == 1 else 0o100666
    return struct.pack("<QQQQQQIIIIIIIIII", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
def entries():
    data = b""
    for inode, name, kind in ((1, b".", 4), (1, b"..", 4), (2, b"file", 8)):
        entry = struct.pack("<QQII", inode, len(data) + 1, len(name), kind) + name
        data += entry + b"\\0" * (-len(entry) % 8)
    return data
def reply(operation, node, body):
    if operation == INIT: return struct.pack("<IIIIHHIIHHI", 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, 0) + b"\\0" * 28
    if operation == LOOKUP: return struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + attributes(2)
    if operation == GETATTR: return struct.pack("<QII", 0, 0, 0) + attributes(node)
    if operation in (OPEN, OPENDIR): return struct.pack("<QII", 1, 0, 0)
    if operation == READ: return b"x" * 4096
    if operation == STATFS: return struct.pack("<QQQQQIIII", 1, 1, 1, 1, 1, 4096, 255, 4096, 0) + b"\\0" * 24
    if operation in (RELEASE, RELEASEDIR, FLUSH): return b""
    if operation == READDIR: return entries() if struct.unpack_from("<QQ", body)[1] == 0 else b""
silent = False
while True:
    request = os.read(device, 1 << 20)
    length, operation, unique, node = struct.unpack_from("<IIQQ", request)
    if operation == STATX and GETATTR in answered and not silent:
        os.write(device, struct.pack("<IiQ", 16, -ENOSYS, unique))
    elif operation in (INIT, *answered) and not silent:
        body = reply(operation, node, request[40:])
        os.write(device, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)
        if operation == INIT: print("ready", flush=True)
        if operation == NAMES.get(last): silent = True
`;

/**
 * A process whose memory stays locked: one thread unmaps a written page of a file whose server does not answer, another
 * waits to map something, and the first thread sleeps.
 */
const HOLDER = `
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.prctl(15, sys.argv[2].encode(), 0, 0, 0)
fd = os.open(sys.argv[1], os.O_RDWR)
page = libc.mmap(None, 4096, 3, 1, fd, 0)
ctypes.memset(page, 65, 1)
pause = libc.pause
print(os.getpid(), "ready", flush=True)
threading.Thread(target=libc.munmap, args=(page, 4096)).start()
threading.Thread(target=lambda: (time.sleep(0.2), libc.mmap(None, 4096, 3, 0x22, -1, 0))).start()
pause()
`;

export type FuseOperation =
  | "lookup"
  | "getattr"
  | "open"
  | "read"
  | "statfs"
  | "opendir"
  | "readdir"
  | "release"
  | "flush"
  | "releasedir";
const GUARD_MS = 60_000;

/** Why this machine has no FUSE; undefined if it has. */
export function whyNoFuse(): string | undefined {
  return existsSync("/dev/fuse") ? undefined : "this machine has no /dev/fuse";
}

/** Mounts a file system at `point` whose server answers these operations, and never the others. */
export async function mountHungFuse(
  node: LabNode,
  point: string,
  answers: readonly FuseOperation[] = [],
  /** The server answers nothing more after the first of these: such as what ends a probe. */
  last?: FuseOperation,
): Promise<void> {
  await node.check(["sh", "-c", '[ -e /dev/fuse ] || mknod /dev/fuse c 10 229; mkdir -p "$1"', "sh", point]);
  await inBackground(node, SERVER, [point, last ?? "", ...answers]);
}

/** Returns the pid in the node of a process of that name, user and environment that keeps its memory locked. */
export async function holdMemory(
  node: LabNode,
  {
    name,
    user,
    env = {},
  }: { readonly name: string; readonly user?: number; readonly env?: Readonly<Record<string, string>> },
): Promise<number> {
  const point = `/var/held-${name}-${user ?? 0}`;
  await mountHungFuse(node, point, ["lookup", "getattr", "open", "read"]);
  const output = await inBackground(node, HOLDER, [`${point}/file`, name], { user, env });
  const pid = Number(output.split(" ")[0]);
  await until(`the memory of ${name} is locked`, GUARD_MS, async () => {
    const { code } = await node.exec(["timeout", "-s", "KILL", "0.5", "cat", `/proc/${pid}/environ`]);
    return code === 137 ? true : undefined;
  });
  return pid;
}
