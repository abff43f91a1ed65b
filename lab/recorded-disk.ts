import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readSync, statSync, writeSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

/**
 * Serves one file over FUSE and appends every write and every flush to a log, in their order: a loop device on that
 * file is a disk whose every state between two writes can be had again. In Python, for it has to be there on every
 * machine. It ends when its mount is gone.
 */
export const RECORDER = `
import ctypes, os, struct, sys
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC = 1, 2, 3, 4, 14, 15, 16, 17, 18, 20
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, BATCH_FORGET = 25, 26, 27, 28, 29, 42
BIG_WRITES, MAX_WRITE, ENOSYS = 1 << 5, 1 << 17, 38
point, image, log = sys.argv[1:4]
device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
if libc.mount(b"recorded", point.encode(), b"fuse.recorded", 0, options.encode()) != 0:
    raise OSError(ctypes.get_errno(), "mount")
disk, writes = os.open(image, os.O_RDWR), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
size = os.fstat(disk).st_size
def attributes(node):
    mode, length = (0o40755, 4096) if node == 1 else (0o100600, size)
    return struct.pack("<QQQQQQIIIIIIIIII", node, length, length // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
def reply(operation, node, body):
    if operation == INIT: return struct.pack("<IIIIHHIIHHI", 7, 31, 1 << 17, BIG_WRITES, 12, 10, MAX_WRITE, 1, 0, 0, 0) + b"\\0" * 28
    if operation == LOOKUP: return struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2)
    if operation in (GETATTR, SETATTR): return struct.pack("<QII", 3600, 0, 0) + attributes(node)
    if operation in (OPEN, OPENDIR): return struct.pack("<QII", 1, 0, 0)
    if operation == READ:
        _, offset, length = struct.unpack_from("<QQI", body)
        return os.pread(disk, length, offset)
    if operation == WRITE:
        _, offset, length = struct.unpack_from("<QQI", body)
        data = body[40:40 + length]
        os.writev(writes, [struct.pack("<QQ", offset, length), data])
        os.pwrite(disk, data, offset)
        return struct.pack("<II", length, 0)
    if operation == FSYNC:
        os.write(writes, struct.pack("<QQ", 0, 0))
        return b""
    if operation == STATFS: return struct.pack("<QQQQQIIII", 1, 1, 1, 1, 1, 4096, 255, 4096, 0) + b"\\0" * 24
    if operation in (FLUSH, RELEASE, RELEASEDIR, READDIR): return b""
    return None
os.write(1, b"ready")
while True:
    try: request = os.read(device, MAX_WRITE + 4096)
    except OSError: break
    length, operation, unique, node = struct.unpack_from("<IIQQ", request)
    if operation in (FORGET, BATCH_FORGET): continue
    body = reply(operation, node, request[40:])
    error = -ENOSYS if body is None else 0
    os.write(device, struct.pack("<IiQ", 16 + len(body or b""), error, unique) + (body or b""))
`;

/** The path of the file to attach a loop device to; `image` has the same content, and `image`.writes the log. */
export async function recordedImage(nodeDir: string, image: string): Promise<string> {
  const point = join(nodeDir, "recorded");
  await mkdir(point);
  const server = spawn("python3", ["-c", RECORDER, point, image, writesOf(image)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(server, "exit").then(([code]) => {
    throw new Error(`the recorder of ${image} ended with code ${code}`);
  });
  await Promise.race([once(server.stdout, "data"), ended]);
  // From here on it may end: with its mount.
  ended.catch(() => undefined);
  server.unref();
  server.stdout.destroy();
  return join(point, "disk.img");
}

function writesOf(image: string): string {
  return `${image}.writes`;
}

/** The copy of an image before its first recorded write. */
export function blankOf(image: string): string {
  return `${image}.blank`;
}

/** Where the log ends now. */
export function writtenBytes(image: string): number {
  return existsSync(writesOf(image)) ? statSync(writesOf(image)).size : 0;
}

export interface RecordedWrites {
  /** Applies the next write to the copy; false after the last one. Flushes are no points of their own. */
  next(): boolean;
  /** Position in the log: of the end of what was applied. */
  readonly position: number;
  close(): void;
}

const HEADER_BYTES = 16;

/** Replays the log of `image` on a copy of blankOf(image). */
export function replayWrites(image: string, copy: string): RecordedWrites {
  const log = openSync(writesOf(image), "r");
  const target = openSync(copy, "r+");
  let position = 0;
  const header = Buffer.alloc(HEADER_BYTES);

  function next(): boolean {
    for (;;) {
      if (readSync(log, header, 0, HEADER_BYTES, position) < HEADER_BYTES) return false;
      const offset = Number(header.readBigUInt64LE(0));
      const data = Buffer.alloc(Number(header.readBigUInt64LE(8)));
      position += HEADER_BYTES;
      if (data.length === 0) continue;
      readSync(log, data, 0, data.length, position);
      position += data.length;
      writeSync(target, data, 0, data.length, offset);
      return true;
    }
  }

  return {
    next,
    get position() {
      return position;
    },
    close: () => {
      closeSync(log);
      closeSync(target);
    },
  };
}
