import { type ChildProcess, spawn } from "node:child_process";

/** Where the distributions run their kubelet and runtime. journalctl ignores units that do not exist. */
const UNITS: readonly string[] = [
  "k3s",
  "k3s-agent",
  "rke2-server",
  "rke2-agent",
  "containerd",
  "kubelet",
  "crio",
  "k0scontroller",
  "k0sworker",
  "snap.microk8s.daemon-containerd",
  "snap.microk8s.daemon-kubelite",
];

const NEWEST_LINES = 50_000;

/**
 * Hands the newest lines of the journal to `read`. Returns what went wrong, for people, or undefined.
 */
export async function journalLines(
  env: Readonly<Record<string, string | undefined>>,
  read: (chunks: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<string | undefined> {
  const units = UNITS.flatMap((unit) => ["-u", unit]);
  const args = ["--no-pager", "--quiet", "-o", "short", "-n", String(NEWEST_LINES), ...units];
  const child = spawn("journalctl", args, { env: { ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const ended = ending(child);
  let complaint = "";
  child.stderr.on("data", (chunk: Uint8Array) => {
    complaint = (complaint + String(chunk)).slice(0, 500);
  });
  await read(child.stdout);
  const end = await ended;
  if (end instanceof Error) {
    const reason = "code" in end && end.code === "ENOENT" ? "journalctl is not on this machine" : end.message;
    return `Could not read the journal: ${reason}. Give the log as a file, or on stdin with -.`;
  }
  if (end === 0) return undefined;
  return `journalctl ended with ${end ?? "a signal"}: ${complaint.trim() || "no message"}`;
}

/** The exit code, null after a signal, or why the program could not be started. */
function ending(child: ChildProcess): Promise<number | null | Error> {
  return new Promise((resolve) => {
    child.once("error", resolve);
    child.once("close", resolve);
  });
}
