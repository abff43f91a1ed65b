import { globSync } from "node:fs";
import { join } from "node:path";
import { cached } from "./cache.ts";
import { unpackDebianPackages } from "./debian-packages.ts";
import type { LabNode } from "./node.ts";

/** The wall clock of one program on a node, separate from the machine's. */
export interface ProgramClock {
  /** Prefix of the program's command line. */
  readonly command: readonly string[];
  /** Sets it this far ahead of the machine's clock, or behind; a running program notices at its next read. */
  step(seconds: number): Promise<void>;
}

const OFFSET_FILE = "/etc/lab-clock";

/**
 * Linux has no namespace for the wall clock, so libfaketime intercepts the C library. It affects unghost, but not
 * programs in Go, which bypass the C library: containerd and kubelet keep the machine's time. Uptime, timeouts and file
 * times are unchanged.
 */
export async function programClock(node: LabNode): Promise<ProgramClock> {
  const root = await cached("libfaketime", (dir) => unpackDebianPackages(["libfaketime"], dir));
  const [library] = globSync(join(root, "usr/lib/*/faketime/libfaketimeMT.so.1"));
  if (library === undefined) throw new Error(`there is no libfaketime in ${root}`);
  const step = async (seconds: number): Promise<void> => {
    // Renamed atomically, because the file is read at every clock read.
    const next = `${OFFSET_FILE}.new`;
    await node.writeFile(next, `${seconds < 0 ? "-" : "+"}${Math.abs(seconds)}\n`);
    await node.check(["mv", next, OFFSET_FILE]);
  };
  await step(0);
  const settings = {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: OFFSET_FILE,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    NO_FAKE_STAT: "1",
  };
  return { command: ["env", ...Object.entries(settings).map(([name, value]) => `${name}=${value}`)], step };
}
