import { type Child, type ChildEnd, describeEnd, outputEnded, startChild } from "../host/child.ts";
import { UNITS } from "../host/distributions.ts";

const NEWEST_LINES = 50_000;
const LONGEST_MS = 120_000;
const LAST_MS = 5000;

/**
 * Passes the newest lines of kubelet's and the runtimes' units in journald to `read`. Returns the error message, or
 * undefined.
 */
export async function journaldLines(
  env: Readonly<Record<string, string | undefined>>,
  read: (chunks: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<string | undefined> {
  const units = UNITS.flatMap((unit) => ["-u", unit]);
  const args = ["--no-pager", "--quiet", "-o", "short", "-n", String(NEWEST_LINES), ...units];
  const child = startChild(["journalctl", ...args], { env: { ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    void child.stop();
  }, LONGEST_MS);
  let complaint = "";
  child.stderr?.on("data", (chunk: Uint8Array) => {
    complaint = (complaint + String(chunk)).slice(0, 500);
  });
  try {
    if (child.stdout !== undefined) await readUntilStopped(child.stdout, read, () => isLate);
    const end = isLate ? await child.ended : await endSoon(child);
    await outputEnded(child);
    if (isLate)
      return `journalctl did not end within ${LONGEST_MS / 1000}s; only what it had printed until then was read.`;
    if (end.kind === "not-started") {
      const reason =
        "code" in end.error && end.error.code === "ENOENT" ? "journalctl is not on this machine" : end.error.message;
      return `Could not read journald: ${reason}. Give the log as a file, or on stdin with -.`;
    }
    if (end.kind === "exited" && end.code === 0) return undefined;
    return `journalctl ${describeEnd(end)}: ${complaint.trim() || "no message"}`;
  } finally {
    clearTimeout(timer);
  }
}

/** journalctl exits soon after the end of its output. */
async function endSoon(child: Child): Promise<ChildEnd> {
  const timer = setTimeout(() => void child.stop(), LAST_MS);
  return await child.ended.finally(() => clearTimeout(timer));
}

async function readUntilStopped(
  stdout: AsyncIterable<Uint8Array>,
  read: (chunks: AsyncIterable<Uint8Array>) => Promise<void>,
  isStopped: () => boolean,
): Promise<void> {
  try {
    await read(stdout);
  } catch (error) {
    // A destroyed stream throws; earlier data was read.
    if (!isStopped()) throw error;
  }
}
