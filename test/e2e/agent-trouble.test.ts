import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { openHealSession } from "../../src/heal/session.ts";
import { ownIdentity } from "../../src/heal/state/run-lock.ts";
import { openCri } from "../../src/runtime/cri.ts";
import { tempDir } from "../support/temp-dir.ts";
import { healedBy, type RunningAgent, startAgent } from "./running-agent.ts";
import { simulatedNode, unghost } from "./unghost.ts";

const GUARD_MS = 120_000;
const QUIET = ["--no-kube", "--listen", ""] as const;

type Node = Awaited<ReturnType<typeof simulatedNode>>;

async function listed({ socket }: Node): Promise<number> {
  const cri = openCri(socket);
  try {
    return (await cri.listPodSandbox(undefined, { timeoutMs: 30_000 })).length;
  } finally {
    cri.close();
  }
}

async function untilEmpty(node: Node): Promise<void> {
  await until("the agent has removed what died", GUARD_MS, async () => ((await listed(node)) === 0 ? true : undefined));
}

/** Neither a crash nor an unhandled rejection: those end the process or are written to stderr. */
async function expectOrderlyEnd(agent: RunningAgent): Promise<void> {
  expect(await agent.stop()).toBe(0);
  expect(agent.stderr()).toBe("");
}

describe("the agent with errors around it", { timeout: GUARD_MS * 2 }, () => {
  test("waits while another run holds the lock, logs it once, and heals afterwards", async () => {
    const node = await simulatedNode();
    const session = await openHealSession({
      stateDir: join(node.root, "var/lib/unghost"),
      hostRoot: node.root,
      uid: process.getuid?.() ?? 0,
      own: ownIdentity(),
      clock: () => new Date(),
      random: Math.random,
      lockWaitMs: 0,
    });
    if (!session.ok) throw new Error(session.refusal.message);
    node.addSandboxes(5, { state: "half-made" });
    const agent = startAgent([...QUIET, ...node.where, "--scan-every", "100ms"]);

    await agent.logged("not healed", ({ reason, finding }) => reason === "lock" && finding === undefined);
    await agent.logged("not healed", ({ reason, finding }) => reason === "lock" && finding !== undefined);
    expect(await listed(node)).toBe(5);
    await session.value.close();
    await untilEmpty(node);

    const refusals = agent.lines.filter(({ reason, finding }) => reason === "lock" && finding === undefined);
    expect(refusals).toHaveLength(1);
    await expectOrderlyEnd(agent);
  });

  test("without a usable state directory changes nothing, reports why, and continues to scan", async () => {
    const node = await simulatedNode();
    const stateDir = join(node.root, "var/lib/unghost");
    mkdirSync(join(node.root, "var/lib"), { recursive: true });
    writeFileSync(stateDir, "not a directory");
    node.addSandboxes(3, { state: "half-made" });
    const agent = startAgent([...QUIET, ...node.where, "--scan-every", "100ms", "--log-level", "debug"]);

    const { message } = await agent.logged("not healed", ({ finding }) => finding === undefined);

    expect(message).toContain("is not a directory");
    const scans = (): number => agent.lines.filter(({ msg }) => msg === "scanned").length;
    const before = scans();
    await until("it goes on scanning", GUARD_MS, () => scans() > before + 3 || undefined);
    expect(await listed(node)).toBe(3);
    await expectOrderlyEnd(agent);
    rmSync(stateDir);
  });

  test("continues when the runtime is silent, starting, gone and back", async () => {
    const node = await simulatedNode();
    node.addSandboxes(5, { state: "ready" });
    const agent = startAgent([...QUIET, ...node.where, "--scan-every", "100ms", "--timeout", "200ms"]);
    await agent.logged("agent started");

    for (const mode of ["mute", "starting", "serving"] as const) {
      node.script({ mode });
      await sleep(500);
    }
    await node.restart();
    rmSync(node.socket);
    await sleep(500);
    await node.powerCut();

    await untilEmpty(node);
    await expectOrderlyEnd(agent);
  });

  test("applies a changed configuration at once, and keeps the previous one when the new one is invalid", async () => {
    const node = await simulatedNode();
    const dir = tempDir();
    onTestFinished(() => dir.remove());
    const config = dir.join("config.yaml");
    writeFileSync(config, "agent:\n  observeOnly: true\n");
    node.addSandboxes(3, { state: "half-made" });
    const agent = startAgent([...QUIET, ...node.where, "--config", config]);
    await agent.logged("not healed", ({ reason }) => reason === "policy");

    writeFileSync(config, "agent:\n  observeOnly: perhaps\n");
    const { problem } = await agent.logged("new configuration rejected; the previous one stays active");
    expect([problem, await listed(node)]).toEqual([expect.stringContaining(`${config}:2`), 3]);
    writeFileSync(config, "agent:\n  observeOnly: false\n");
    agent.signal("SIGHUP");

    await untilEmpty(node);
    await agent.logged("ghost healed", () => healedBy(agent).length === 3);
    await expectOrderlyEnd(agent);
  });

  test("stops retrying what cannot be healed, and logs the manual steps", async () => {
    const node = await simulatedNode();
    const dir = tempDir();
    onTestFinished(() => dir.remove());
    const config = dir.join("config.yaml");
    writeFileSync(config, "agent:\n  defaults: { attempts: 2, coolDown: 1s }\n");
    const [id = ""] = node.addSandboxes(1, { state: "dead" });
    node.script({ delErrors: { [id]: "the plugin is in a bad mood" } });
    const agent = startAgent([...QUIET, ...node.where, "--config", config]);

    const { next, finding } = await agent.logged("healing given up; manual steps required");

    expect([next, finding]).toEqual([expect.any(String), expect.stringContaining(id)]);
    expect(agent.lines.filter(({ msg }) => msg === "healing failed")).toHaveLength(2);
    await expectOrderlyEnd(agent);
  });

  test("invalid settings are a usage error before anything is started", async () => {
    const { code, stderr } = await unghost(["agent", "--scan-every", "often"]);

    expect([code, stderr]).toEqual([64, expect.stringContaining("--scan-every")]);
  });
});
