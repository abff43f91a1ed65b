import { spawn } from "node:child_process";
import { once } from "node:events";
import { getPriority } from "node:os";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test } from "vitest";
import { GUARD_MS, simulatedNode, UNGHOST } from "./unghost.ts";

const canRaise = process.getuid?.() === 0 && getPriority() === 0;

/** The command's priority, once it has written its first line. */
async function priorityOf(command: readonly string[]): Promise<number> {
  const node = await simulatedNode();
  const [file = "", ...args] = [...command, ...node.where];
  const running = spawn(file, args, { env: { PATH: "/usr/bin:/bin" }, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => {
    const ended = once(running, "exit");
    running.kill();
    await ended;
  });
  await once(createInterface(running.stdout), "line");
  return getPriority(running.pid);
}

describe.runIf(canRaise)("priority of a process", { timeout: GUARD_MS }, () => {
  test("of the keeper and the agent is above the default, so that a busy node does not delay syncs", async () => {
    expect(await priorityOf([UNGHOST, "keep"])).toBe(-10);
    expect(await priorityOf([UNGHOST, "agent", "--no-kube", "--listen", ""])).toBe(-10);
  });

  test("of the agent is kept when it was set by someone else", async () => {
    expect(await priorityOf(["nice", "-n", "5", UNGHOST, "keep"])).toBe(5);
  });
});
