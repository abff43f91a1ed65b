import { constants } from "node:fs";
import { eachPaced } from "../host/concurrency.ts";
import { type OpenFile, openFile } from "../host/guarded-fs.ts";
import { resolveOnHost } from "../host/paths.ts";
import type { HostDir } from "../host/safe-fs.ts";
import { absent, errorCode, errorLabel, read, type Source } from "../host/source.ts";
import type { KernelFacts, KernelSign } from "./types/snapshot.ts";

const KMSG = "/dev/kmsg";
/** The kernel returns one record per read, and refuses a buffer that is too small for it. */
const RECORD_BYTES = 8192;
/** Many records are searched at once. */
const CHUNK_BYTES = 8 * RECORD_BYTES;
/** The ring buffer is read from its oldest record, and most are smaller: only a flood is truncated. */
const MAX_BYTES = 1024 * 1024;

interface Sign {
  readonly kind: keyof Omit<KernelFacts, "sinceBoot">;
  /**
   * Every line of this sign contains it. A plain search is the fastest, and most records contain none of these words.
   */
  readonly word: string;
  readonly line: RegExp;
}

const SIGNS: readonly Sign[] = [
  { kind: "stalls", word: " stall", line: /\brcu\w{0,20} (?:self-)?detected (?:expedited )?stalls? on/i },
  { kind: "stalls", word: "soft lockup", line: /\bsoft lockup - cpu/i },
  {
    kind: "hungTasks",
    word: "blocked for more than",
    line: /\btask \S{1,64}:\d{1,10} blocked for more than \d{1,6} seconds/,
  },
  {
    kind: "netdeviceWaits",
    word: "unregister_netdevice",
    line: /\bunregister_netdevice: waiting for \S{1,64} to become free/,
  },
  {
    kind: "signalsDenied",
    word: 'apparmor="DENIED"',
    line: /\boperation="signal"[^\n]{0,400}?(?:comm="(?:runc|crun)|peer="[^"]{0,60}(?:runc|crun))/,
  },
];

const LONGEST_QUOTE = 300;

/** `priority,sequence,microseconds,flags;text`. Lines that start with a space continue the previous one. */
const RECORD = /^\d+,(\d+),\d+,[^;\n]*;(.*)$/m;

/** Problems in the kernel's own log since boot. Cheap, and absent without permission. */
export async function readKernelLog({ root, signal }: Pick<HostDir, "root" | "signal">): Promise<Source<KernelFacts>> {
  let file: OpenFile;
  try {
    file = openFile(
      resolveOnHost(root, KMSG, "keep"),
      constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW,
    );
  } catch (error) {
    return absent(`${KMSG} cannot be opened (${errorLabel(error)})`);
  }
  try {
    const stats = file.stat();
    if (!stats.isCharacterDevice() && !stats.isFile()) return absent(`${KMSG} is neither a device nor a file`);
    const signs = {
      stalls: { count: 0 },
      hungTasks: { count: 0 },
      netdeviceWaits: { count: 0 },
      signalsDenied: { count: 0 },
    };
    let first: string | undefined;
    await eachPaced(chunks(file), signal, (lines) => {
      first ??= RECORD.exec(textOf(lines, 0))?.[1];
      countSigns(lines, signs);
    });
    const { signalsDenied, ...others } = signs;
    const denied = signalsDenied.count === 0 ? undefined : signalsDenied;
    return read({ ...others, signalsDenied: denied, sinceBoot: Number(first) === 0 });
  } finally {
    file.close();
  }
}

/** Counts each sign in complete lines, and keeps its last text. Most lines have none, and are never decoded. */
function countSigns(lines: Buffer, signs: Record<Sign["kind"], KernelSign>): void {
  for (const { kind, word, line } of SIGNS) {
    for (let at = lines.indexOf(word); at >= 0; at = lines.indexOf(word, endOfLine(lines, at))) {
      const text = RECORD.exec(textOf(lines, lines.lastIndexOf(NEWLINE, at) + 1))?.[2];
      if (text !== undefined && line.test(text)) {
        signs[kind] = { count: signs[kind].count + 1, last: text.slice(0, LONGEST_QUOTE) };
      }
    }
  }
}

const NEWLINE = 0x0a;

function textOf(lines: Buffer, start: number): string {
  return lines.toString("latin1", start, endOfLine(lines, start));
}

function endOfLine(lines: Buffer, from: number): number {
  const end = lines.indexOf(NEWLINE, from);
  return end < 0 ? lines.length : end;
}

/** Complete lines, many at a time; each is overwritten by the next. */
function* chunks(file: OpenFile): Iterable<Buffer> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let bytes = 0;
  let carried = 0;
  for (let isEnd = false; !isEnd && bytes < MAX_BYTES; ) {
    const filled = fill(file, buffer, carried);
    isEnd = filled.isEnd;
    bytes += filled.end - carried;
    // A device returns complete records; a file in a test may end anywhere.
    const whole = isEnd ? filled.end : buffer.lastIndexOf(NEWLINE, filled.end - 1) + 1 || filled.end;
    yield buffer.subarray(0, whole);
    carried = filled.end - whole;
    buffer.copyWithin(0, whole, filled.end);
  }
}

/** Reads records until the buffer is full. */
function fill(file: OpenFile, buffer: Buffer, start: number): { readonly end: number; readonly isEnd: boolean } {
  let end = start;
  while (buffer.length - end >= RECORD_BYTES) {
    const length = readRecord(file, buffer, end);
    if (length === "overwritten") continue;
    if (length === 0) return { end, isEnd: true };
    end += length;
  }
  return { end, isEnd: false };
}

function readRecord(file: OpenFile, buffer: Buffer, at: number): number | "overwritten" {
  try {
    return file.read(buffer, at, buffer.length - at, null);
  } catch (error) {
    // The next record was overwritten: the one after it comes with the next read.
    if (errorCode(error) === "EPIPE") return "overwritten";
    // EAGAIN is the end of the ring buffer. On any other error the records so far count.
    return 0;
  }
}
