import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { hostileEntry, PRECIOUS, PRECIOUS_FILE } from "../../lab/chaos/hostile-entry.ts";
import { unaccountedFor } from "../../lab/chaos/quarantine-check.ts";
import { unknownId } from "../../lab/faults/host-local.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPod } from "../../lab/pods.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { cniFiles, expectAlive, heal, listedIds } from "./healed-node.ts";
import { company } from "./scanned-node.ts";

const RESULTS = "/var/lib/cni/results";
const ORPHANS = 20_000;
const KINDS = ["symlink", "fifo", "directory", "sparse"] as const;

function orphans(node: LabNode, count: number): void {
  const longAgo = new Date(Date.now() - 3_600_000);
  mkdirSync(node.path(RESULTS), { recursive: true });
  for (let made = 0; made < count; made++) {
    const containerId = unknownId();
    const path = node.path(`${RESULTS}/cbr0-${containerId}-eth0`);
    const result = { cniVersion: "1.0.0", dns: {} };
    writeFileSync(
      path,
      JSON.stringify({ kind: "cniCacheV1", containerId, ifName: "eth0", networkName: "cbr0", result }),
    );
    utimesSync(path, longAgo, longAgo);
  }
}

describe.skipIf(NO_REAL_NODE !== undefined)("heal among hostile files", { timeout: HANG_GUARD_MS }, () => {
  test("moves 20,000 orphaned files in one run, and leaves similar files", async () => {
    const node = await start();
    const beside = await company(node);
    const before = cniFiles(node).length;
    const hostile = [];
    for (const kind of KINDS) hostile.push(await hostileEntry(node, kind));
    orphans(node, ORPHANS);

    const { code, report } = await heal(node);

    expect([code, report.remaining]).toEqual([0, []]);
    expect(report.actions).toHaveLength(ORPHANS);
    expect(readdirSync(node.path("/var/lib/unghost/quarantine"))).toHaveLength(ORPHANS);
    expect(await unaccountedFor(node)).toEqual([]);
    const [symlink, fifo, directory, sparse] = hostile.map(({ path }) => node.path(path ?? ""));
    expect(lstatSync(symlink ?? "").isSymbolicLink()).toBe(true);
    expect(readFileSync(node.path(PRECIOUS_FILE), "utf8")).toBe(PRECIOUS);
    expect(lstatSync(fifo ?? "").isFIFO()).toBe(true);
    expect(readFileSync(`${directory}/precious`, "utf8")).toBe(PRECIOUS);
    expect(lstatSync(sparse ?? "").size).toBe(2 * 1024 ** 3);
    expect(report.problems).toHaveLength(KINDS.length);
    for (const { path } of hostile) rmSync(node.path(path ?? ""), { recursive: true });
    expect(cniFiles(node)).toHaveLength(before);
    await expectAlive(node, beside);
  });

  test.each(KINDS)("refuses a %s in place of a dead sandbox's cache before the runtime reads it", async (kind) => {
    const node = await start();
    const ghost = await runPod(node, { name: "ghost" });
    const other = await runPod(node, { name: "other" });
    await node.powerCut();
    await node.powerOn();
    rmSync(node.path(`${RESULTS}/cbr0-${ghost.sandboxId}-eth0`));
    const path = node.path((await hostileEntry(node, kind, ghost.sandboxId)).path ?? "");
    const before = lstatSync(path, { bigint: true }).ino;

    const { code, report } = await heal(node);

    expect([code, report.remaining]).toEqual([1, [`dead-after-crash/${ghost.sandboxId}`]]);
    const refused = report.actions?.filter(({ outcome }) => outcome === "refused") ?? [];
    expect(refused.map(({ reason }) => reason)).toEqual([expect.stringContaining("Inspect it")]);
    expect(lstatSync(path, { bigint: true }).ino).toBe(before);
    expect(await listedIds(node)).toEqual([ghost.sandboxId]);
    expect(readdirSync(node.path(RESULTS)).filter((file) => file.includes(other.sandboxId))).toEqual([]);
  });
});
