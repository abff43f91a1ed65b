import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { leftBehind, machineNetwork } from "../../lab/left-behind.ts";
import { until } from "../../lab/poll.ts";
import { BROKEN_NODES } from "../../lab/shell/broken-nodes.ts";
import { shellOptions } from "../../lab/shell/options.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { HANG_GUARD_MS, NO_REAL_NODE } from "./real-node.ts";

const SETTLE_MS = 10_000;

interface Shell {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<unknown>;
  printed(): string;
}

function startShell(...args: readonly string[]): Shell {
  const child = spawn(process.execPath, ["lab/shell.ts", ...args], {
    env: { ...process.env, UNGHOST_BIN: UNGHOST },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  if (child.pid === undefined) throw new Error("lab/shell.ts did not start");
  return { child, pid: child.pid, ended: once(child, "close"), printed: () => text };
}

async function expectNothingLeft(pid: number): Promise<void> {
  await until("nothing is left", SETTLE_MS, () => (leftBehind(pid).length === 0 ? true : undefined)).catch(
    () => undefined,
  );
  expect(leftBehind(pid)).toEqual([]);
}

test.each(Object.keys(BROKEN_NODES))("the list of faults contains %s", (name) => {
  for (const args of [[], ["--fault", "list"], ["--fault", ""]]) {
    expect(shellOptions(args)).toEqual({ print: expect.stringContaining(`  ${name} `), code: 0 });
  }
});

test.each([
  [["--fault", "nonsense"], "no fault nonsense"],
  [["--fault", "power-cut", "--pods", "many"], "PODS"],
  [["--fault", "power-cut", "--pods", "0"], "PODS"],
  [["--fault", "power-cut", "--runtime", "9.9"], "RUNTIME"],
  [["--fault", "half-made", "--runtime", "2.3"], "RUNTIME 1.6"],
])("%j is refused", (args, why) => {
  expect(shellOptions(args)).toEqual({ print: expect.stringContaining(why), code: 64 });
});

describe.skipIf(NO_REAL_NODE !== undefined)("make lab", { timeout: HANG_GUARD_MS }, () => {
  test("runs a command on the broken node, returns its exit code and leaves nothing behind", async () => {
    const network = machineNetwork();

    const command = "unghost scan --no-kube --min-age 0s -o name; exit 7";
    const shell = startShell("--fault", "torn-caches", "--pods", "2", "--run", command);
    await shell.ended;

    expect(shell.child.exitCode, shell.printed()).toBe(7);
    expect(shell.printed()).toMatch(/Try next:\n {2}unghost scan/);
    expect(shell.printed()).toMatch(/^libcni-result-cache-corrupt\//m);
    expect(shell.printed()).toMatch(/^dead-after-crash\//m);
    await expectNothingLeft(shell.pid);
    expect(machineNetwork()).toEqual(network);
  });

  test("a clock step shows what it promises", async () => {
    const shell = startShell(
      "--fault",
      "clock-step",
      "--pods",
      "1",
      "--run",
      "unghost scan --no-kube --min-age 0s -o name",
    );
    await shell.ended;

    expect(shell.printed()).toMatch(/^clock-step-sandbox-attempt-reuse\//m);
    await expectNothingLeft(shell.pid);
  });

  test("Ctrl-C ends it and leaves nothing behind", async () => {
    const shell = startShell("--fault", "power-cut", "--pods", "1", "--run", "echo ready; sleep 1000000");
    await until("the command runs", HANG_GUARD_MS, () => shell.printed().includes("ready\n") || undefined);

    shell.child.kill("SIGINT");
    await shell.ended;

    expect(shell.child.exitCode).toBe(130);
    await expectNothingLeft(shell.pid);
  });
});
