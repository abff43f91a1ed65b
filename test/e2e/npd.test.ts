import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { describe, expect, test } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { runPods } from "../../lab/pods.ts";
import { parseDurationMs } from "../../src/cli/settings/kinds.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { UNGHOST, unghost } from "./unghost.ts";

interface Rule {
  readonly type: "permanent" | "temporary";
  readonly condition: string;
  readonly reason: string;
  readonly path: string;
  readonly args: readonly string[];
  readonly timeout: string;
}

interface MonitorConfig {
  readonly plugin: string;
  readonly pluginConfig: {
    readonly invoke_interval: string;
    readonly timeout: string;
    readonly max_output_length: number;
  };
  readonly conditions: readonly { readonly type: string; readonly reason: string; readonly message: string }[];
  readonly rules: readonly Rule[];
}

const CONFIG: MonitorConfig = JSON.parse(readFileSync("deploy/node-problem-detector/unghost.json", "utf8"));
/** It reads no more of a plugin's output. */
const MAX_READ = 4096;

interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

/** Runs a plugin like node-problem-detector: with the rule's timeout, judging exit code and stdout. */
async function conditionBy(
  rule: Rule,
  node: LabNode,
): Promise<Condition & { readonly wasCut: boolean; readonly log: string }> {
  const timeoutMs = milliseconds(rule.timeout);
  const { code, stdout, stderr } = await node.exec([UNGHOST, ...rule.args], { timeoutMs });
  const healthy = CONFIG.conditions.find(({ type }) => type === rule.condition);
  if (healthy === undefined) throw new Error(`the rule's condition ${rule.condition} is not declared`);
  const printed = Buffer.from(Buffer.from(stdout).subarray(0, MAX_READ).toString().trim());
  const message = printed.subarray(0, CONFIG.pluginConfig.max_output_length).toString();
  const output = { wasCut: message !== stdout.trimEnd(), log: stderr };
  if (code === 0) return { ...healthy, ...output, status: "False" };
  const status = code === 1 ? "True" : "Unknown";
  return { type: rule.condition, status, reason: rule.reason, message, ...output };
}

function milliseconds(text: string): number {
  return parseDurationMs(text) ?? Number.NaN;
}

function onlyRule(): Rule {
  const [rule, ...more] = CONFIG.rules;
  if (rule === undefined || more.length > 0) throw new Error("one rule was expected");
  return rule;
}

test("node-problem-detector accepts the configuration", () => {
  const { pluginConfig, conditions } = CONFIG;
  const rule = onlyRule();

  expect(CONFIG.plugin).toBe("custom");
  expect(pluginConfig.max_output_length).toBe(80);
  expect(milliseconds(rule.timeout)).toBeLessThanOrEqual(milliseconds(pluginConfig.timeout));
  expect(milliseconds(pluginConfig.timeout)).toBeLessThan(milliseconds(pluginConfig.invoke_interval));
  expect(conditions.map(({ type }) => type)).toEqual(["GhostSandboxes"]);
  expect([rule.type, rule.condition, basename(rule.path)]).toEqual(["permanent", "GhostSandboxes", "unghost"]);
});

test("--one-line needs a running runtime: with --offline it is a usage error", async () => {
  const { code, stdout, stderr } = await unghost(["scan", "--one-line", "--offline"]);

  expect([code, stdout]).toEqual([64, ""]);
  expect(stderr).toMatch(/--one-line .* --offline/);
});

describe.skipIf(NO_REAL_NODE !== undefined)("as a plugin on a real node", { timeout: HANG_GUARD_MS }, () => {
  test("the condition is False, True after a power cut, and Unknown when the runtime hangs", async () => {
    const node = await start();
    await runPods(node, 12, { containers: [{ name: "app" }] });

    const before = await conditionBy(onlyRule(), node);
    await node.powerCut();
    await node.powerOn();
    const after = await conditionBy(onlyRule(), node);
    await node.check(["sh", "-c", "kill -STOP $(pidof containerd)"]);
    const hung = await conditionBy(onlyRule(), node);

    expect(before).toEqual({ ...CONFIG.conditions[0], status: "False", wasCut: false, log: "" });
    expect(after).toMatchObject({
      type: "GhostSandboxes",
      status: "True",
      reason: "GhostSandboxesPresent",
      message: expect.stringMatching(/^12 ghosts: 12 dead-after-crash; .*blocked$/),
      wasCut: false,
      log: expect.stringContaining("GHOSTS  12 ghosts"),
    });
    expect(hung).toMatchObject({ status: "Unknown", message: expect.stringMatching(/^unknown: \S/), wasCut: false });
  });
});
