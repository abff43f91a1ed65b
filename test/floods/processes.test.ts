import { describe, expect, test } from "vitest";
import { floodProcesses } from "../../lab/faults/floods.ts";
import { runPods } from "../../lab/pods.ts";
import { AGENT_UNTIL_STOPPED } from "../e2e/agent-script.ts";
import { AT_ONCE, expectGone, unghostIn } from "../e2e/healed-node.ts";
import { UNPRIVILEGED } from "../e2e/impostor.ts";
import { problemsOf, reportOf, UNGHOST } from "../e2e/unghost.ts";
import { NO_REAL_NODE, start } from "../lab/real-node.ts";

const PROCESSES = 50_000;
const GUARD_MS = 120_000;

describe.skipIf(NO_REAL_NODE !== undefined)("as many processes as the machine has numbers for", () => {
  test("scan ends by its timeout and names what it could not read; boot heals; the agent answers and stops", async () => {
    const node = await start();
    const pods = await runPods(node, 2);
    await node.powerCut();
    await node.powerOn();
    const started = await floodProcesses(node, { name: "containerd", user: UNPRIVILEGED, processes: PROCESSES });
    console.log(`${started} processes; ${PROCESSES} were asked for`);

    const startedAt = performance.now();
    const hurried = await unghostIn(node, ["scan", "--timeout", "200ms", "-o", "json", ...AT_ONCE]);
    const seconds = (performance.now() - startedAt) / 1000;
    const boot = await node.exec([UNGHOST, "boot", "--after", "--no-kube"], { timeoutMs: GUARD_MS });
    const agent = await node.exec(["sh", "-c", AGENT_UNTIL_STOPPED], { timeoutMs: GUARD_MS });

    expect(seconds).toBeLessThan(0.2 + 1);
    expect(problemsOf(reportOf(hurried)).join("\n")).toMatch(/the processes in \/proc were not .* in time/);
    expect([boot.timedOut, boot.code, boot.stdout]).toEqual([false, 0, expect.stringContaining("2 healed")]);
    await expectGone(node, ...pods);
    expect([agent.timedOut, agent.stdout.trim()]).toEqual([false, "exit code 0"]);
  });
});
