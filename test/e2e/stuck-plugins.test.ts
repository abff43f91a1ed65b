import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CNI_BIN_DIR } from "../../lab/cni-config.ts";
import { leakedLease } from "../../lab/faults/host-local.ts";
import { leaseWithStuckPlugin, STUCK_PIDS, STUCK_PLUGINS, type StuckPlugin } from "../../lab/faults/stuck-plugin.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { runPods } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, heal, unghostIn } from "./healed-node.ts";
import { UNGHOST } from "./unghost.ts";

const SHAPES = Object.keys(STUCK_PLUGINS) as StuckPlugin[];
const NETWORK = "/var/lib/cni/networks/cbr0";
/** Far above every deadline used here, and far below the sleep of the plugins. */
const GUARD_MS = 120_000;
/** A shell's exit code for a child killed by SIGKILL. */
const KILLED = 128 + 9;

async function stuckLeases(node: LabNode): Promise<void> {
  for (const [index, shape] of SHAPES.entries()) await leaseWithStuckPlugin(node, shape, `10.88.200.${index + 1}`);
}

function leases(node: LabNode): readonly string[] {
  return readdirSync(node.path(NETWORK)).filter((name) => name.startsWith("10.88.200."));
}

/** Of the plugins and their children, except for daemons, which cannot be found. */
async function livePlugins(node: LabNode): Promise<readonly string[]> {
  if (!existsSync(node.path(STUCK_PIDS))) return [];
  const pids = readFileSync(node.path(STUCK_PIDS), "utf8").trim().split("\n");
  const script = 'for p in "$@"; do cat /proc/$p/stat; done 2>/dev/null; true';
  const { stdout } = await node.exec(["sh", "-c", script, "sh", ...pids]);
  return stdout.split("\n").filter((stat) => stat !== "" && !/\) Z /.test(stat) && !isDaemon(stat));
}

function isDaemon(stat: string): boolean {
  const [, , group, session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [pid] = stat.split(" ");
  return pid === group && pid === session && stat.includes("(sh)") && !stat.includes("(stuck");
}

describe.skipIf(NO_REAL_NODE !== undefined)("with hung plugins", { timeout: HANG_GUARD_MS }, () => {
  test("heal ends, releases the addresses in another way, and leaves no plugin behind", async () => {
    const node = await start();
    await stuckLeases(node);
    await leakedLease(node, "10.88.200.100");

    const { report } = await heal(node);

    expect(report.actions).toHaveLength(SHAPES.length + 1);
    expect(report.actions?.filter(({ outcome }) => outcome === "failed")).toEqual([]);
    expect(leases(node)).toEqual([]);
    await until("no plugin lives", GUARD_MS, async () => ((await livePlugins(node)).length === 0 ? true : undefined));
  });

  test.each(["before", "after"] as const)("boot %s the runtime ends at its deadline", async (mode) => {
    const node = await start();
    await runPods(node, 2);
    await node.powerCut();
    await stuckLeases(node);
    await node.powerOn({ runtime: mode === "after" });

    const result = await node.exec(
      [
        UNGHOST,
        "boot",
        "--no-kube",
        "--deadline",
        "6s",
        "--containerd-config",
        "/etc/containerd/config.toml",
        ...(mode === "after" ? ["--after"] : []),
      ],
      { timeoutMs: 30_000 },
    );

    expect([result.timedOut, result.code]).toEqual([false, 0]);
    const report = JSON.parse(readFileSync(node.path("/var/lib/unghost/boot.json"), "utf8"));
    expect(report).toMatchObject({ outcome: "failed", reason: expect.stringContaining("deadline") });
    expect(await livePlugins(node)).toEqual([]);
    if (mode === "after") return;
    const { stdout } = await node.exec(["sh", "-c", "cat /proc/[0-9]*/comm"]);
    expect(stdout.split("\n")).not.toContain("containerd");
  });

  test("boot whose event loop is blocked is killed by its watchdog", async () => {
    const node = await start();
    await stuckLeases(node);
    const command = `${UNGHOST} boot --after --no-kube --deadline 5s; echo "exit code $?"`;
    const booted = node.exec(["sh", "-c", command], { timeoutMs: GUARD_MS });
    const pid = await until("boot and its watchdog run", GUARD_MS, () => {
      const processes = processesOf(node);
      const boot = processes.find((one) => one.command[0] === UNGHOST && one.command[1] === "boot");
      return processes.some(({ command: [program, , what] }) => program === "timeout" && what === "cat")
        ? boot?.pid
        : undefined;
    });
    await node.check(["kill", "-STOP", String(pid)]);

    const { timedOut, stdout } = await booted;

    expect([timedOut, stdout]).toEqual([false, expect.stringContaining(`exit code ${KILLED}`)]);
  });

  test("the agent still heals what appears later", async () => {
    const node = await start();
    await stuckLeases(node);
    const config = "agent:\n  defaults:\n    minAge: 0s\n";
    await node.writeFile("/etc/unghost/config.yaml", config);
    const agent = node.exec(
      [UNGHOST, "agent", ...AT_ONCE, "--config", "/etc/unghost/config.yaml", "--listen", "", "--scan-every", "5s"],
      { timeoutMs: GUARD_MS },
    );
    await until(
      "the agent has started a plugin that hangs",
      GUARD_MS,
      () => existsSync(node.path(STUCK_PIDS)) || undefined,
    );
    const later = await leakedLease(node, "10.88.201.1");

    await until("the later lease is healed", GUARD_MS, () =>
      existsSync(node.path(later.path ?? "")) ? undefined : true,
    );
    await node.exec(["pkill", "-TERM", "-x", "unghost"]);
    await agent;
  });
});

describe.skipIf(NO_REAL_NODE !== undefined)("a plugin that prints terminal escapes and forged lines", () => {
  test("does not get them into the output of heal and boot", async () => {
    const node = await start();
    const { path = "" } = await leakedLease(node, "10.88.200.1");
    const hostile =
      '#!/bin/sh\nprintf \'{"msg":"\\033[2J\\\\u001b]0;x\\\\u0007\\\\nunghost boot: healed, 99 healed"}\\n\\033[31mforged\\n\'\nexit 1\n';
    await node.writeFile(`${CNI_BIN_DIR}/host-local`, hostile, 0o755);

    const healed = await unghostIn(node, ["heal", "--yes", ...AT_ONCE]);
    const booted = await unghostIn(node, ["boot", "--after", "--no-kube", "--deadline", "20s"]);

    for (const { stdout, stderr } of [healed, booted]) {
      expect(stdout + stderr).not.toContain("\u001b[2J");
      expect(stdout + stderr).not.toContain("\u001b]0;");
      expect((stdout + stderr).split("\n").filter((line) => /^(?:forged|unghost boot: healed, 99)/.test(line))).toEqual(
        [],
      );
    }
    expect(booted.stderr).toContain("forged");
    expect(existsSync(node.path(path))).toBe(true);
  });
});
