import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "smol-toml";
import { type ChildEnd, describeEnd, startChild } from "../host/child.ts";
import { resolveOnHost } from "../host/paths.ts";
import { pollUntil } from "../host/poll.ts";
import { readRegularFile, readTail } from "../host/safe-fs.ts";
import { parseToml, stringsIn } from "../host/toml.ts";
import { provePath } from "../host/trusted-path.ts";
import { openContainerd } from "../runtime/containerd.ts";
import { answersCri } from "../runtime/cri.ts";
import type { CallOptions } from "../runtime/grpc.ts";
import type { RuntimeFiles } from "./runtime-files.ts";

/** The node's own containerd, started by unghost on a private socket with the node's own records. */
interface BorrowedRuntime {
  readonly endpoint: string;
  /** Orderly first, then by force. Bounded: a process that hangs in the kernel is not waited for. */
  stop(): Promise<void>;
}

type Borrowing =
  | { readonly kind: "borrowed"; readonly runtime: BorrowedRuntime }
  | { readonly kind: "failed"; readonly reason: string };

const POLL_MS = 20;
/** Tenths of a second for an orderly end after unghost has crashed. */
const ORDERLY_TENTHS = 50;
/** The same near the deadline. Its database survives kill -9. */
const STOP_GRACE_MS = 1000;
const LOG_TAIL_BYTES = 4096;

/** With CRI, to heal through it; without, to repair the records that prevent its start. */
type BorrowedWith = "cri" | "records-only";

/** Starts it and waits until it answers, exits, or the time is up. No process is left in any case. */
export async function borrowRuntime(
  files: RuntimeFiles,
  privateDir: string,
  deadline: AbortSignal,
  borrowedWith: BorrowedWith = "cri",
): Promise<Borrowing> {
  const doubt = doubtOf(files);
  if (doubt !== undefined) return { kind: "failed", reason: doubt };
  const cri = borrowedWith === "cri" ? "with-cri" : "without-cri";
  const file = readRegularFile(resolveOnHost("/", files.config, "follow"));
  if (file.kind !== "content") {
    return { kind: "failed", reason: `${files.config} ${file.kind === "gone" ? "is missing" : file.reason}` };
  }
  const config = borrowedConfig(file.text, files.config, cri);
  if ("problem" in config) return { kind: "failed", reason: config.problem };
  rmSync(privateDir, { recursive: true, force: true });
  mkdirSync(privateDir, { recursive: true, mode: 0o700 });
  const socket = join(privateDir, "containerd.sock");
  const configPath = join(privateDir, "config.toml");
  const logPath = join(privateDir, "containerd.log");
  writeFileSync(configPath, config.text, { mode: 0o600 });
  const log = openSync(logPath, "w", 0o600);
  const containerd = [files.binary, "--config", configPath, "--address", socket, "--root", files.root];
  const child = startChild(["sh", "-c", KEEPER, "sh", ...containerd, "--state", join(privateDir, "state")], {
    stdio: ["pipe", log, log],
    env: borrowedEnvironment(files),
    graceMs: STOP_GRACE_MS,
    // Closing the pipe makes the supervisor end its child process.
    askToEnd: ({ stdin }) => stdin?.end(),
  });
  closeSync(log);
  const stop = async (): Promise<void> => {
    await child.stop();
    rmSync(privateDir, { recursive: true, force: true });
  };
  const ready = await Promise.race([answers(socket, deadline, borrowedWith), child.ended]);
  if (ready === "answers") return { kind: "borrowed", runtime: { endpoint: `unix://${socket}`, stop } };
  const reason = ready === "too late" ? "it did not answer in time" : `it ended at once (${endWords(ready)})`;
  const last = lastWords(logPath);
  await stop();
  return { kind: "failed", reason: `${files.binary} was started and ${reason}${last}` };
}

/**
 * It runs as root, with everything that its configuration names and with these records: only root may be able to change
 * them.
 */
export function doubtOf({ binary, config, root }: RuntimeFiles): string | undefined {
  for (const path of [binary, config, root]) {
    const trust = provePath("/", path);
    if (trust.kind === "refused") return `${binary} is not started over ${root}: ${trust.detail}. ${trust.next}`;
  }
  return undefined;
}

/**
 * Runs containerd and ends it when the pipe to unghost closes: k3s units leave processes behind (KillMode=process), and
 * a containerd that outlived a crashed hook would hold the database lock.
 */
const KEEPER = `exec 3<&0
"$@" </dev/null 3<&- &
runtime=$!
{
  cat <&3 >/dev/null
  kill -TERM $runtime
  tries=${ORDERLY_TENTHS}
  while [ $tries -gt 0 ] && kill -0 $runtime; do sleep 0.1; tries=$((tries - 1)); done
  kill -KILL $runtime
} 2>/dev/null &
wait $runtime
code=$?
kill $! 2>/dev/null
exit $code`;

function borrowedEnvironment({ binary }: RuntimeFiles): NodeJS.ProcessEnv {
  // The temporary runtime must not use the unit's notify socket.
  const { NOTIFY_SOCKET: _socket, PATH = "/usr/sbin:/usr/bin:/sbin:/bin", ...rest } = process.env;
  // Distributions that ship containerd have its shims and runc in the same directory.
  return { ...rest, PATH: `${dirname(binary)}:${PATH}` };
}

function endWords(end: ChildEnd): string {
  return end.kind === "not-started" ? end.error.message : describeEnd(end);
}

async function answers(
  socket: string,
  deadline: AbortSignal,
  borrowedWith: BorrowedWith,
): Promise<"answers" | "too late"> {
  const call = { timeoutMs: 2000, signal: deadline };
  const isUp = async (): Promise<true | undefined> =>
    (await (borrowedWith === "cri" ? answersCri(socket, call) : listsTasks(socket, call))) || undefined;
  // Its exit is watched meanwhile.
  const timing = { everyMs: POLL_MS, timeoutMs: Number.POSITIVE_INFINITY, stop: deadline, sleep };
  return (await pollUntil(isUp, timing)) === true ? "answers" : "too late";
}

async function listsTasks(socket: string, call: CallOptions): Promise<boolean> {
  const containerd = openContainerd(socket);
  try {
    await containerd.listTasks(call);
    return true;
  } catch {
    return false;
  } finally {
    containerd.close();
  }
}

function lastWords(logPath: string): string {
  const tail = readTail(logPath, LOG_TAIL_BYTES);
  const lines = tail.kind === "text" ? tail.text.trim().split("\n") : [];
  const relevant = lines.findLast((line) => /fatal|panic|error/i.test(line)) ?? lines.at(-1);
  return relevant ? `: ${relevant}` : "";
}

/** Tables that configure listeners; the temporary containerd listens only on its private socket. */
const LISTENING_TABLES = ["grpc", "ttrpc", "debug", "metrics"];

/** Passed on the command line, which overrides the file. */
const ON_COMMAND_LINE = ["root", "state"];

/** The CRI plugin's names in 1.x and 2.x. */
const CRI_PLUGINS = [
  "io.containerd.grpc.v1.cri",
  "io.containerd.cri.v1.runtime",
  "io.containerd.cri.v1.images",
  "io.containerd.podsandbox.controller.v1.podsandbox",
];

type BorrowedConfig = { readonly text: string } | { readonly problem: string };

/** The distribution's configuration without its listeners. Without CRI, containerd starts with any records. */
export function borrowedConfig(config: string, path: string, cri: "with-cri" | "without-cri"): BorrowedConfig {
  const parsed = parseToml(config);
  if ("problem" in parsed) return { problem: `${path} is not valid TOML: ${parsed.problem}` };
  const dropped = new Set([...LISTENING_TABLES, ...ON_COMMAND_LINE]);
  const kept = Object.entries(parsed.table).filter(([key]) => !dropped.has(key));
  const table = Object.fromEntries(kept);
  if ("imports" in table) {
    // containerd resolves relative imports from the directory of the configuration, and ours is elsewhere.
    table["imports"] = stringsIn(table["imports"]).map((one) => resolve(dirname(path), one));
  }
  if (cri === "without-cri") table["disabled_plugins"] = [...CRI_PLUGINS, ...stringsIn(table["disabled_plugins"])];
  return { text: stringify(table, { numbersAsFloat: true }) };
}
