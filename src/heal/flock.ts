import { spawn } from "node:child_process";
import { once } from "node:events";
import { type Outcome, ok, refuse } from "./outcome.ts";

/**
 * Holds a kernel lock on a file, as host-local does, while something is done. Node has no flock(2) of its own: the
 * `flock` program of util-linux holds it and lets go when its standard input ends, or when this process does.
 */
export async function withFlock<T>(path: string, waitMs: number, work: () => Promise<T>): Promise<Outcome<T>> {
  const wait = String(Math.max(1, Math.ceil(waitMs / 1000)));
  const holder = spawn("flock", ["--exclusive", "--wait", wait, path, "sh", "-c", "echo held; read -r _"], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  const ended = new Promise<"ended">((resolve) => {
    holder.on("error", () => resolve("ended"));
    holder.on("close", () => resolve("ended"));
  });
  const held = await Promise.race([once(holder.stdout, "data").then(() => "held" as const), ended]);
  if (held === "ended") {
    return refuse(`The lock ${path} could not be had.`, "Install util-linux (flock), or see who holds the lock.");
  }
  try {
    return ok(await work());
  } finally {
    holder.stdin.end();
    await ended;
  }
}
