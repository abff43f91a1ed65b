import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CNI_CONF_FILE } from "../../lab/cni-config.ts";
import { type HungAdd, hungAdd } from "../../lab/faults/hung-plugin.ts";
import type { LabNode } from "../../lab/node.ts";
import { sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectAlive, unghostIn } from "./healed-node.ts";
import { AT_ONCE, company } from "./scanned-node.ts";
import { reportOf } from "./unghost.ts";

const TIMEOUT = ["--timeout", "4s", "-o", "json"] as const;

/** Rewrites the network configuration with the same bytes, like every restart of a network add-on. */
async function rewriteConfiguration(node: LabNode): Promise<void> {
  await node.writeFile(CNI_CONF_FILE, readFileSync(node.path(CNI_CONF_FILE), "utf8"));
  await until("Status hangs", HANG_GUARD_MS, async () => ((await answersStatus(node)) ? undefined : true));
}

async function answersStatus(node: LabNode): Promise<boolean> {
  try {
    await node.cri.status({ timeoutMs: 1000 });
    return true;
  } catch (error) {
    if (error instanceof RuntimeError) return false;
    throw error;
  }
}

async function wedged(node: LabNode): Promise<readonly HungAdd[]> {
  const hung = [
    await hungAdd(node, { name: "first", uid: "first" }),
    await hungAdd(node, { name: "second", uid: "second" }),
  ];
  await rewriteConfiguration(node);
  return hung;
}

describe.skipIf(NO_REAL_NODE !== undefined)("a blocked CNI lock", { timeout: HANG_GUARD_MS }, () => {
  // containerd 1.6.20 holds no lock while a plugin runs: with hung ADDs and a new configuration its Status answers.
  test("is one finding that names the plugins, and heal makes Status answer (containerd 2.3)", async () => {
    const node = await start({ runtime: "2.3" });
    const beside = await company(node);
    const hung = await wedged(node);

    const young = reportOf(await unghostIn(node, ["scan", "--no-kube", ...TIMEOUT]));
    expect([young.verdict, young.podCreation?.able]).toEqual(["unknown", "no"]);
    expect(young.runtime.reachable).toBe(true);
    expect(young.pending?.map(({ reason }) => reason)).toContain("runtime-status-hanging");
    expect(young.problems.map(({ problem }) => problem)).toContainEqual(expect.stringContaining("Status"));

    const found = await unghostIn(node, ["scan", ...AT_ONCE, ...TIMEOUT]);
    const report = reportOf(found);
    expect([found.code, report.verdict]).toEqual([1, "ghosts"]);
    expect(report.findings.map((finding) => finding.class)).toEqual(["cni-lock-wedge"]);
    const facts = report.findings.flatMap(({ evidence }) => evidence.map(({ fact }) => fact)).join("\n");
    for (const { pid } of hung) expect(facts).toContain(`pid ${pid} `);
    expect(facts).toContain("configuration directory changed");
    expect(report.findings[0]?.blocks.join(" ")).toMatch(/default\/first, default\/second/);

    const healing = await unghostIn(node, ["heal", "--yes", ...AT_ONCE, ...TIMEOUT]);
    const healed = reportOf(healing);
    const [freed, ...others] = healed.actions ?? [];
    expect(freed).toMatchObject({
      outcome: "healed",
      action: "free-cni-lock",
      code: "node-not-asked",
      reason: expect.stringContaining("Status"),
    });
    // Without a grace period, the lease of a creation that containerd is rolling back counts as leaked. Its DELs do not
    // count as hung: they started after the run did.
    expect(others.every(({ action, outcome }) => action === "delete-lease" && outcome === "healed")).toBe(true);
    expect([healing.code, healed.verdict, healed.podCreation?.able]).toEqual([0, "healthy", "yes"]);
    expect(await answersStatus(node)).toBe(true);
    await expectAlive(node, beside);
    for (const { ref } of hung) await node.cri.runPodSandbox(sandboxConfig(ref, ref), CALL);
  });
});
