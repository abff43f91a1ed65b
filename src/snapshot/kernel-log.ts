import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { resolveOnHost } from "./host-paths.ts";
import type { KernelFacts, KernelSign } from "./kernel-facts.ts";
import { eachPaced } from "./pace.ts";
import { errorCode } from "./safe-fs.ts";
import { absent, read, type Source } from "./source.ts";

const KMSG = "/dev/kmsg";
/** The kernel gives one record a read, and refuses a buffer that cannot take it. */
const RECORD_BYTES = 8192;
/** The ring is read from its oldest record on, and most are smaller: only a flood is cut short. */
const MOST_BYTES = 1024 * 1024;

const SIGNS = {
  stalls: /\brcu\w{0,20} (?:self-)?detected (?:expedited )?stalls? on|\bsoft lockup - cpu/i,
  hungTasks: /\btask \S{1,64}:\d{1,10} blocked for more than \d{1,6} seconds/,
  netdeviceWaits: /\bunregister_netdevice: waiting for \S{1,64} to become free/,
} as const satisfies Readonly<Record<keyof Omit<KernelFacts, "sinceBoot">, RegExp>>;

const KINDS = ["stalls", "hungTasks", "netdeviceWaits"] as const;
const LONGEST_QUOTE = 300;

/** `priority,sequence,microseconds,flags;text`. Lines that begin with a blank say more about the one before. */
const RECORD = /^\d+,(\d+),(\d+),[^;]*;(.*)$/;

/** What of trouble the kernel's own log has told since boot. Cheap, and absent where we may not read it. */
export async function readKernelLog({
  root,
  signal,
}: {
  readonly root: string;
  readonly signal: AbortSignal;
}): Promise<Source<KernelFacts>> {
  let fd: number;
  try {
    fd = openSync(resolveOnHost(root, KMSG, "keep"), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    return absent(`${KMSG} cannot be opened (${errorCode(error)})`);
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isCharacterDevice() && !stats.isFile()) return absent(`${KMSG} is neither a device nor a file`);
    const tally = new Tally();
    await eachPaced(records(fd), signal, (record) => tally.add(record));
    return read(tally.facts());
  } finally {
    closeSync(fd);
  }
}

type Kind = keyof typeof SIGNS;

/** One pass over the records: each sign counted, its last words kept. */
class Tally {
  readonly #signs: Record<Kind, KernelSign> = {
    stalls: { count: 0 },
    hungTasks: { count: 0 },
    netdeviceWaits: { count: 0 },
  };
  #first: number | undefined;

  add(record: string): void {
    const [, sequence, microseconds, text = ""] = RECORD.exec(record) ?? [];
    if (sequence === undefined) return;
    this.#first ??= Number(sequence);
    for (const kind of KINDS) {
      if (!SIGNS[kind].test(text)) continue;
      const last = { text: text.slice(0, LONGEST_QUOTE), secondsAfterBoot: Number(microseconds) / 1e6 };
      this.#signs[kind] = { count: this.#signs[kind].count + 1, last };
    }
  }

  facts(): KernelFacts {
    return { ...this.#signs, sinceBoot: this.#first === 0 };
  }
}

function* records(fd: number): Iterable<string> {
  const buffer = Buffer.allocUnsafe(RECORD_BYTES);
  let bytes = 0;
  let carried = "";
  while (bytes < MOST_BYTES) {
    const length = readRecord(fd, buffer);
    if (length === "overwritten") continue;
    if (length === 0) break;
    bytes += length;
    // A device gives whole records; a file that stands in for one may break off anywhere.
    const lines = (carried + buffer.toString("latin1", 0, length)).split("\n");
    carried = lines.pop() ?? "";
    yield* lines;
  }
  if (carried !== "") yield carried;
}

function readRecord(fd: number, buffer: Buffer): number | "overwritten" {
  try {
    return readSync(fd, buffer, 0, buffer.length, null);
  } catch (error) {
    // The ring went on over the record that was next: the one after it comes with the next read.
    if (errorCode(error) === "EPIPE") return "overwritten";
    // EAGAIN is the end of the ring. Whatever else it is, what was read until here counts.
    return 0;
  }
}
