import { readdirSync, statSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { floodProcesses } from "../../lab/faults/floods.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPods } from "../../lab/pods.ts";
import { AGENT_UNTIL_STOPPED } from "../e2e/agent-script.ts";
import { cpuSecondsOf } from "../e2e/cpu-time.ts";
import { AT_ONCE, expectGone } from "../e2e/healed-node.ts";
import { problemsOf, reportOf, UNGHOST } from "../e2e/unghost.ts";
import { NO_REAL_NODE, start } from "../lab/real-node.ts";

const PROCESSES = 50_000;
const GUARD_MS = 300_000;
/** Of nothing else on the machine. */
const USER = 60_533;

describe.skipIf(NO_REAL_NODE !== undefined)("as many processes as the machine has numbers for", () => {
  test("scan ends by its timeout and names what it could not read; boot heals; the agent answers and stops", async () => {
    const node = await start();
    const pods = await runPods(node, 2);
    await node.powerCut();
    await node.powerOn();
    const before = await scanWithin(node, "30s");
    const started = await floodProcesses(node, { name: "containerd", user: USER, processes: PROCESSES });
    console.log(`${started} processes; ${PROCESSES} were asked for`);

    const whole = await scanWithin(node, "30s");
    // Long enough for all but the processes: without them a scan takes less.
    const timeoutMs = Math.ceil((whole.seconds - before.seconds) * 1000 * SHARE);
    const hurried = await scanWithin(node, `${timeoutMs}ms`);
    const boot = await node.exec([UNGHOST, "boot", "--after", "--no-kube"], { timeoutMs: GUARD_MS });
    const agent = await node.exec(["sh", "-c", AGENT_UNTIL_STOPPED], { timeoutMs: GUARD_MS });

    console.log(`seconds of processor time: ${before.seconds}, with them ${whole.seconds}, hurried ${hurried.seconds}`);
    expect(whole.report.findings).toHaveLength(2);
    expect(problemsOf(hurried.report).join("\n")).toMatch(/the processes in \/proc were not .* in time/);
    expect(hurried.seconds - before.seconds).toBeLessThan((whole.seconds - before.seconds) / 2);
    expect([boot.timedOut, boot.code, boot.stdout]).toEqual([false, 0, expect.stringContaining("2 healed")]);
    await expectGone(node, ...pods);
    expect([agent.timedOut, agent.stdout.trim()]).toEqual([false, "exit code 0"]);
    await node.powerCut();
    expect(processesOfUser()).toBe(0);
  });
});

/** Of the time that all processes take. */
const SHARE = 1 / 8;

async function scanWithin(node: LabNode, timeout: string) {
  const { result, seconds } = await cpuSecondsOf(node, UNGHOST, "scan", "--timeout", timeout, "-o", "json", ...AT_ONCE);
  return { report: reportOf(result), seconds };
}

function processesOfUser(): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === USER).length;
}
