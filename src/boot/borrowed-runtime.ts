import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openContainerd } from "../runtime/containerd.ts";
import { openCri } from "../runtime/cri.ts";
import { readTail } from "../snapshot/tail.ts";
import { borrowedConfig, withoutCri } from "./borrowed-config.ts";
import type { RuntimeFiles } from "./runtime-files.ts";

/** The node's own containerd, started by us on a private socket over the node's own records. */
export interface BorrowedRuntime {
  readonly endpoint: string;
  /** Orderly, then by force; when it resolves the process is gone. */
  stop(): Promise<void>;
}

export type Borrowing =
  | { readonly kind: "borrowed"; readonly runtime: BorrowedRuntime }
  | { readonly kind: "failed"; readonly reason: string };

const POLL_MS = 20;
const ORDERLY_MS = 5000;
const LOG_TAIL_BYTES = 4096;

/** With CRI, to heal through it; without, to mend the records that keep it from starting. */
export type BorrowedWith = "cri" | "records-only";

/** Starts it and waits until it answers, it dies, or the time is up. Whatever happens, nothing is left running. */
export async function borrowRuntime(
  files: RuntimeFiles,
  privateDir: string,
  deadline: AbortSignal,
  borrowedWith: BorrowedWith = "cri",
): Promise<Borrowing> {
  rmSync(privateDir, { recursive: true, force: true });
  mkdirSync(privateDir, { recursive: true, mode: 0o700 });
  const socket = join(privateDir, "containerd.sock");
  const configPath = join(privateDir, "config.toml");
  const logPath = join(privateDir, "containerd.log");
  const config = borrowedConfig(readFileSync(files.config, "utf8"), files.config);
  writeFileSync(configPath, borrowedWith === "cri" ? config : withoutCri(config), { mode: 0o600 });
  const log = openSync(logPath, "w", 0o600);
  const child = spawn(
    files.binary,
    ["--config", configPath, "--address", socket, "--root", files.root, "--state", join(privateDir, "state")],
    {
      stdio: ["ignore", log, log],
      // Its shims and runc lie beside it in the distributions that bring their own.
      env: {
        ...process.env,
        PATH: `${dirname(files.binary)}:${process.env["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin"}`,
      },
    },
  );
  const ended = endOf(child);
  const stop = async (): Promise<void> => {
    await stopChild(child, ended);
    rmSync(privateDir, { recursive: true, force: true });
  };
  const ready = await Promise.race([answers(socket, deadline, borrowedWith), ended]);
  if (ready === "answers") return { kind: "borrowed", runtime: { endpoint: `unix://${socket}`, stop } };
  const reason = ready === "too late" ? "it did not answer in time" : `it ended at once (${ready})`;
  const last = lastWords(logPath);
  await stop();
  return { kind: "failed", reason: `${files.binary} was started and ${reason}${last}` };
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("exit", (code, signal) => resolve(signal ?? `code ${code}`));
  });
}

async function answers(
  socket: string,
  deadline: AbortSignal,
  borrowedWith: BorrowedWith,
): Promise<"answers" | "too late"> {
  const call = { timeoutMs: 2000, signal: deadline };
  while (!deadline.aborted) {
    const cri = openCri(socket);
    const containerd = openContainerd(socket);
    try {
      await (borrowedWith === "cri" ? cri.version(call) : containerd.listTasks(call));
      return "answers";
    } catch {
      // Not up yet: asked again until the deadline, and its own end is watched beside this.
      await sleep(POLL_MS);
    } finally {
      cri.close();
      containerd.close();
    }
  }
  return "too late";
}

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.kill("SIGTERM");
  const force = setTimeout(() => child.kill("SIGKILL"), ORDERLY_MS);
  await ended;
  clearTimeout(force);
}

function lastWords(logPath: string): string {
  const tail = readTail(logPath, LOG_TAIL_BYTES);
  const lines = tail.kind === "text" ? tail.text.trim().split("\n") : [];
  const telling = lines.findLast((line) => /fatal|panic|error/i.test(line)) ?? lines.at(-1);
  return telling ? `: ${telling}` : "";
}
