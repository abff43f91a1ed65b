import { existsSync } from "node:fs";
import { couldConcernSandboxes } from "../../classes/index.ts";
import { describeEnd, outputEnded, startChild } from "../../host/child.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { pause } from "../../host/poll.ts";
import { journaldDirectory } from "../../node/journald.ts";
import type { TriggersOptions } from "./triggers.ts";

type JournalOptions = Pick<TriggersOptions, "hostRoot" | "onHint" | "warn" | "onLost">;

/**
 * journalctl filters most lines of a healthy node, because each line that wakes the agent costs 0.2 ms. A lower-case
 * pattern is case-insensitive.
 */
const TROUBLE = "fail|error|panic|reserved|timed out|not yet finished|teardown network for sandbox";
/** More than this within a second is a flood, which repeats itself. */
const MAX_BYTES = 64 * 1024;
const SECOND_MS = 1000;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 300_000;
/** After this long the back-off starts from the beginning. */
const STEADY_MS = 60_000;
const LONGEST_COMPLAINT = 300;

/** Follows the journal of systemd units, if there is one. */
export function followJournald({ warn, onLost, ...options }: JournalOptions) {
  let followed = "";
  let stop = new AbortController();
  let reported: string | undefined;
  const report = (reason: string): void => {
    if (reason !== reported) warn("journald unavailable; relying on periodic scans", reason);
    reported = reason;
  };
  return {
    refresh: (units: readonly string[]): void => {
      if (units.join() === followed) return;
      followed = units.join();
      stop.abort();
      stop = new AbortController();
      followUnits(units, { ...options, report, signal: stop.signal }).catch(onLost);
    },
    close: (): void => stop.abort(),
  };
}

interface Following extends Pick<JournalOptions, "hostRoot" | "onHint"> {
  readonly report: (reason: string) => void;
  readonly signal: AbortSignal;
}

/** Restarts journalctl whenever it ends, with a growing back-off. */
async function followUnits(units: readonly string[], { hostRoot, report, ...following }: Following): Promise<void> {
  const { signal } = following;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    const startedMs = performance.now();
    const message = await followUntilItEnds(placeOf(hostRoot), units, following);
    if (signal.aborted) return;
    report(message);
    if (performance.now() - startedMs >= STEADY_MS) pauseMs = FIRST_PAUSE_MS;
    await pause(pauseMs, signal);
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
}

/** Without earlier lines, which the first scan has read. */
const ARGS = ["--follow", "--lines=0", "--no-pager", "--quiet", "--output=cat", `--grep=${TROUBLE}`] as const;

/**
 * The arguments for the node's journal, or why there is none. It may be mounted into a container; the container's own
 * journal is not used.
 */
function placeOf(hostRoot: string): readonly string[] | string {
  const isThere = existsSync(resolveOnHost(hostRoot, "/run/systemd/journal", "follow"));
  if (!isThere) return "there is none on this node";
  if (hostRoot === "/") return [];
  const directory = journaldDirectory(hostRoot);
  return directory === undefined ? `its files are not to be seen below ${hostRoot}` : [`--directory=${directory}`];
}

/** Returns why it has ended, or could not be started. */
async function followUntilItEnds(
  place: ReturnType<typeof placeOf>,
  units: readonly string[],
  { onHint, signal }: Pick<Following, "onHint" | "signal">,
): Promise<string> {
  if (typeof place === "string") return place;
  const args = [...place, ...ARGS, ...units.map((unit) => `--unit=${unit}`)];
  const child = startChild(["journalctl", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
    void child.stop();
  };
  signal.addEventListener("abort", stop, { once: true });
  let complaint = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(0, LONGEST_COMPLAINT);
  });
  let second = { sinceMs: 0, bytes: 0 };
  child.stdout?.on("data", (chunk: Buffer) => {
    if (isStopped) return;
    const now = performance.now();
    if (now - second.sinceMs > SECOND_MS) second = { sinceMs: now, bytes: 0 };
    second.bytes += chunk.length;
    const isFlood = second.bytes > MAX_BYTES;
    if (isFlood) {
      complaint = "it is flooded";
      stop();
    }
    // A line that is split by the pipe may be missed: hints need not be complete.
    if (isFlood || chunk.toString().split("\n").some(couldConcernSandboxes)) {
      onHint({ from: "lines in the journal", urgency: "soon" });
    }
  });
  try {
    const end = await child.ended;
    await outputEnded(child);
    if (end.kind === "not-started") return `journalctl could not be run (${end.error.message})`;
    const how = end.kind === "exited" ? `ended with ${end.code}` : describeEnd(end);
    return `journalctl ${how}: ${complaint.trim()}`;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
