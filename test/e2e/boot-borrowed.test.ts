import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { runPods } from "../../lab/pods.ts";
import { ensureContainerd, ensureTools } from "../../lab/tools.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { UNGHOST } from "./unghost.ts";

const PODS = 5;
const CONFIG = "/etc/containerd/config.toml";
const UNIT = "/etc/systemd/system/containerd.service";
const newest = NO_REAL_NODE === undefined ? await ensureContainerd() : undefined;
const missing = newest?.available === true ? "" : " (skipped: no containerd 2.3 here)";
const newer = newest?.available === true ? join(newest.binDir, "containerd") : "";
const older = NO_REAL_NODE === undefined ? (await ensureTools()).containerd : "";

/** Boots a node whose PATH leads to `onPath`, whatever its unit contains. */
async function boot(node: LabNode, onPath: string, ...flags: string[]) {
  const path = `${dirname(onPath)}:${dirname(newer)}:${dirname(older)}:/usr/sbin:/usr/bin:/sbin:/bin`;
  const command = [UNGHOST, "boot", "--no-kube", ...flags];
  const { stdout } = await node.exec(command, { timeoutMs: HANG_GUARD_MS, env: { PATH: path } });
  return { stdout, report: JSON.parse(readFileSync(node.path("/var/lib/unghost/boot.json"), "utf8")) };
}

async function afterPowerCut(runtime: "1.6" | "2.3"): Promise<LabNode> {
  const node = await start({ runtime });
  await runPods(node, PODS);
  await node.powerCut();
  await node.powerOn({ runtime: false });
  return node;
}

async function unitStarts(node: LabNode, program: string): Promise<void> {
  await node.writeFile(UNIT, "[Service]\nExecStart=/usr/bin/containerd\n");
  await node.writeFile(`${UNIT}.d/override.conf`, `[Service]\nExecStart=\nExecStart=-${program}\n`);
}

async function listed(node: LabNode): Promise<number> {
  return (await node.cri.listPodSandbox(undefined, CALL)).length;
}

describe.skipIf(missing !== "")(`temporary containerd${missing}`, { timeout: HANG_GUARD_MS }, () => {
  test.each(["1.6", "2.3"] as const)(
    "is the one that the unit starts, whatever PATH contains (%s)",
    async (runtime) => {
      const node = await afterPowerCut(runtime);
      const [own, other] = runtime === "1.6" ? [older, newer] : [newer, older];
      await unitStarts(node, own);

      const { report, stdout } = await boot(node, other);

      expect(report).toMatchObject({ outcome: "healed", healed: PODS, reason: "no ghosts are left" });
      expect(stdout).toContain(`${PODS} healed`);
      await node.startRuntime();
      expect(await listed(node)).toBe(0);
    },
  );

  test.each([
    ["the unit", true],
    ["PATH, where there is no unit,", false],
  ])(
    "is not started when %s leads to one that is older than the records; boot --after heals",
    async (_who, hasUnit) => {
      const node = await afterPowerCut("2.3");
      if (hasUnit) await unitStarts(node, older);

      const before = await boot(node, older);

      expect(before.report).toMatchObject({ outcome: "failed", healed: 0 });
      expect(before.report.reason).toMatch(/no containerd was borrowed: .* 2\.0 or later .*boot --after/);
      expect(before.stdout).not.toContain("no ghosts are left");
      await node.startRuntime();
      expect(await listed(node)).toBe(PODS);
      const after = await boot(node, older, "--after");
      expect(after.report).toMatchObject({ outcome: "healed", healed: PODS });
      expect(await listed(node)).toBe(0);
      expect(JSON.parse(readFileSync(node.path("/var/lib/unghost/runtime.json"), "utf8")).version).toContain("2.3");
    },
  );

  test("reads relative imports of the node's configuration, over several lines", async () => {
    const node = await afterPowerCut("2.3");
    await unitStarts(node, newer);
    const config = readFileSync(node.path(CONFIG), "utf8");
    await node.writeFile(
      CONFIG,
      `imports = [\n  # a file that is not there keeps containerd from starting\n  "extra.toml",\n]\n${config}`,
    );
    await node.writeFile(join(dirname(CONFIG), "extra.toml"), `${/^version = \d+$/m.exec(config)?.[0] ?? ""}\n`);

    const { report } = await boot(node, newer);

    expect(report).toMatchObject({ outcome: "healed", healed: PODS });
  });

  test("is not started when it is older than the last one, though the records do not show it", async () => {
    const node = await afterPowerCut("1.6");
    await node.writeFile("/var/lib/unghost/runtime.json", '{"name":"containerd","version":"v1.7.2"}');
    await node.check(["chmod", "0700", "/var/lib/unghost"]);
    await unitStarts(node, older);

    const { report } = await boot(node, older);

    expect(report.reason).toMatch(/no containerd was borrowed: .*1\.7\.2 ran on this node last/);
  });
});
