import { writeFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { leakedLease } from "../../lab/faults/host-local.ts";
import { orphanedCache } from "../../lab/faults/orphaned-cache.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPod, runPods } from "../../lab/pods.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, expectGone, heal, healAll, listedIds, treeOf, unghostIn } from "./healed-node.ts";
import { GUARD_MS, reportOf, UNGHOST } from "./unghost.ts";

function flat(output: string): string {
  return stripVTControlCharacters(output).replace(/\s+/g, " ");
}

describe.skipIf(NO_REAL_NODE !== undefined)("the heal command", { timeout: HANG_GUARD_MS }, () => {
  test("changes nothing without consent, and prints how to give it", async () => {
    const node = await deadNode(3);
    const disk = () => treeOf(node.path("/var/lib/cni"));
    const before = [await listedIds(node), disk()];

    const dry = await unghostIn(node, ["heal", "--dry-run", "--yes", ...AT_ONCE]);
    const dryJson = await unghostIn(node, ["heal", "--dry-run", "-o", "json", ...AT_ONCE]);
    const names = await unghostIn(node, ["heal", "--dry-run", "-o", "name", ...AT_ONCE]);
    const wide = await unghostIn(node, ["heal", "--dry-run", "-o", "wide", ...AT_ONCE]);
    const mute = await unghostIn(node, ["heal", ...AT_ONCE]);

    expect([dry.code, dryJson.code, mute.code]).toEqual([1, 1, 3]);
    expect(dry.stdout).toMatch(/^Plan: heal 3 ghosts on /);
    expect(dry.stdout).toMatch(/^\w+ +default\/busy +dead-after-crash .* remove$/m);
    expect(flat(dry.stdout)).toContain(`To heal: unghost heal ${AT_ONCE.join(" ")} `);
    expect(names.stdout).toMatch(/^(?:dead-after-crash\/[0-9a-f]{64}\n){3}$/);
    expect(wide.stdout).toMatch(/^SEV .* ACTION +SANDBOX +SUBJECT +EVIDENCE$/m);
    expect(mute.stderr).toContain("--yes");
    const { actions, remaining } = reportOf(dryJson);
    expect(actions?.map(({ outcome }) => outcome)).toEqual(["skipped", "skipped", "skipped"]);
    expect(remaining).toHaveLength(3);
    expect([await listedIds(node), disk()]).toEqual(before);
    expect(treeOf(node.path("/var/lib/unghost"))).toEqual(new Map());
  });

  test("repeats what made the plan safe in the commands that it prints", async () => {
    const node = await deadNode(2);
    const given = ["--only", "dead-after-crash", "-n", "default", ...AT_ONCE];

    const [dry, mute, scan] = [
      await unghostIn(node, ["heal", "--dry-run", ...given]),
      await unghostIn(node, ["heal", ...given]),
      await unghostIn(node, ["scan", ...given]),
    ];

    for (const flag of ["--only dead-after-crash", "--min-age 0s", "--namespace default"]) {
      expect(flat(dry.stdout).split("To heal: ")[1]).toContain(flag);
      expect(flat(scan.stdout).split("Next: unghost heal ")[1]).toContain(flag);
      expect(mute.stderr).toContain(flag);
    }
  });

  test("heals a saved plan without a question, and refuses it when the node has changed", async () => {
    const node = await deadNode(2);
    const file = "/var/tmp/plan.json";
    const saved = await unghostIn(node, ["heal", "--dry-run", "-o", "json", "-n", "default", ...AT_ONCE]);
    writeFileSync(node.path(file), saved.stdout);

    const otherFlags = await unghostIn(node, ["heal", "--plan", file, "default/dead-0", ...AT_ONCE]);
    expect([otherFlags.code, otherFlags.stderr]).toEqual([
      3,
      expect.stringMatching(/^Nothing was changed: .*1 that it has and that cannot be healed now\. Make a new plan: /),
    ]);
    const edited = "/var/tmp/edited.json";
    writeFileSync(node.path(edited), saved.stdout.replaceAll("dead-0", "other"));
    for (const plan of [edited, `sha256:${"0".repeat(64)}`]) {
      const refused = await unghostIn(node, ["heal", "--plan", plan, "-n", "default", ...AT_ONCE]);
      expect([refused.code, refused.stderr]).toEqual([3, expect.stringMatching(/^Nothing was changed: the node, or/)]);
    }
    expect(await listedIds(node)).toHaveLength(2);
    const healed = await unghostIn(node, ["heal", "--plan", file, "-n", "default", ...AT_ONCE]);
    expect([healed.code, await listedIds(node)]).toEqual([0, []]);
    const again = await unghostIn(node, ["heal", "--plan", file, "-n", "default", ...AT_ONCE]);
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("Nothing to heal.")]);
    writeFileSync(node.path(file), "{}");
    const broken = await unghostIn(node, ["heal", "--plan", file, ...AT_ONCE]);
    expect([broken.code, broken.stderr]).toEqual([64, expect.stringContaining("is not a saved plan")]);
  });

  test("asks once on a terminal, and shows the progress", async () => {
    const node = await deadNode(3);

    const no = await onTerminal(node, "n\n", ["heal", ...AT_ONCE]);
    expect([no.code, await listedIds(node)]).toEqual([3, expect.objectContaining({ length: 3 })]);
    const gone = await onTerminal(node, "", ["heal", ...AT_ONCE]);
    expect([gone.code, await listedIds(node)]).toEqual([3, expect.objectContaining({ length: 3 })]);

    const yes = await onTerminal(node, "y\n", ["heal", ...AT_ONCE]);
    expect([yes.code, await listedIds(node)]).toEqual([0, []]);
    expect(yes.stdout).toMatch(/Heal 3 ghosts on \S+\? \[y\/N\] /);
    const seen = flat(yes.stdout);
    expect(seen).toContain("RESULT WHAT CLASS DONE TIME LOGS ");
    expect(seen.match(/healed default\/\S+ dead-after-crash removed \d+\.\ds /g)).toHaveLength(3);
    expect(seen).toMatch(/healed default\/busy dead-after-crash removed \d+\.\ds \S*[0-9a-z]{9}-[0-9a-z]{4} /);
    expect(seen).toMatch(/Logs: \/var\/lib\/unghost\/quarantine /);
    expect(seen).toContain("HEALED 3 healed, nothing left on ");
    expect(seen).not.toContain("unghost undo");
  });

  test("heals only the requested classes", async () => {
    const node = await start();
    const lease = await leakedLease(node);
    const cache = await orphanedCache(node);
    const there = () => [lease, cache].map(({ path = "" }) => treeOf(node.path("/var/lib/cni")).has(path.slice(13)));

    await healAll(node, [...AT_ONCE, "--skip", "hostlocal-ip-leak-after-reboot", "--skip", "cni-cache-files-orphaned"]);
    expect(there()).toEqual([true, true]);
    await healAll(node, [...AT_ONCE, "--only", "cni-cache-files-orphaned"]);
    expect(there()).toEqual([true, false]);
    await healAll(node);
    expect(there()).toEqual([false, false]);
  });

  test("touches only the named targets, and refuses an unknown one", async () => {
    const node = await deadNode(3);
    const names = async () =>
      (await node.cri.listPodSandbox(undefined, CALL)).map(({ metadata }) => metadata?.name).toSorted();

    const unknown = await unghostIn(node, ["heal", "default/dead-9", "--yes", ...AT_ONCE]);
    expect([unknown.code, unknown.stderr]).toEqual([
      64,
      expect.stringMatching(/no pod, sandbox or finding "default\/dead-9" on /),
    ]);
    expect(await listedIds(node)).toHaveLength(3);

    const scanned = await unghostIn(node, ["scan", "default/dead-1", ...AT_ONCE]);
    expect([scanned.code, scanned.stdout]).toEqual([
      1,
      expect.stringMatching(/^GHOSTS {2}1 ghost on \S+ for default\/dead-1 /),
    ]);
    expect(scanned.stdout).toContain("Why:");
    const inJson = await unghostIn(node, ["scan", "default/dead-1", "-o", "json", ...AT_ONCE]);
    const { findings } = JSON.parse(inJson.stdout) as NodeReport;
    const { steps = [], reason } = findings[0]?.plan ?? {};
    const dry = await unghostIn(node, ["heal", "default/dead-1", "--dry-run", ...AT_ONCE]);
    expect(flat(dry.stdout)).toContain(`${steps.join(", then ")}. Reason: ${reason}`);
    for (const [index, step] of steps.entries()) {
      expect(flat(scanned.stdout).toLowerCase()).toContain(`${index + 1}. ${step}`.toLowerCase());
    }
    const healed = await unghostIn(node, ["heal", "default/dead-1", "--all-dead", "--yes", ...AT_ONCE]);
    expect([healed.code, healed.stdout]).toEqual([
      0,
      expect.stringMatching(/HEALED {2}1 healed, nothing left on \S+ for default\/dead-1/),
    ]);
    expect(await names()).toEqual(["busy", "dead-0"]);

    const [finding = ""] = (await unghostIn(node, ["scan", "-o", "name", "dead-0", ...AT_ONCE])).stdout.split("\n");
    const byId = await unghostIn(node, ["heal", finding, "--yes", ...AT_ONCE]);
    expect([byId.code, await names()]).toEqual([0, ["busy"]]);
    const again = await unghostIn(node, ["heal", finding, "--yes", ...AT_ONCE]);
    expect([again.code, await names()]).toEqual([0, ["busy"]]);

    const elsewhere = await unghostIn(node, ["heal", "-n", "shop", "--yes", ...AT_ONCE]);
    expect([elsewhere.code, await names()]).toEqual([0, ["busy"]]);
    const here = await unghostIn(node, ["heal", "-n", "default", "--yes", ...AT_ONCE]);
    expect([here.code, await names()]).toEqual([0, []]);
  });

  test("reports failures by its exit code", async () => {
    const node = await start();

    expect((await unghostIn(node, ["heal", "--only", "no-such-class"])).code).toBe(64);
    expect((await unghostIn(node, ["heal", "--no-such-flag"])).code).toBe(64);
    await node.stopRuntime();
    const blind = await unghostIn(node, ["heal", "--yes", "-o", "json", ...AT_ONCE]);
    expect([blind.code, reportOf(blind).verdict]).toEqual([2, "unknown"]);
  });

  test("two concurrent runs do the work once", async () => {
    const node = await start();
    const pods = await runPods(node, 12, { name: "dead" });
    await node.powerCut();
    for (const pod of pods) await emptyResultCache(node, pod);
    await node.powerOn();

    const runs = await Promise.all([heal(node), heal(node)]);

    expect(runs.map(({ code }) => code)).toEqual([0, 0]);
    const healed = runs.flatMap(({ report }) => report.actions ?? []).filter(({ outcome }) => outcome === "healed");
    // The second run may have scanned during the first and seen another class of the same sandbox.
    expect(new Set(healed.map(({ finding }) => finding.split("/").at(-1))).size).toBe(12);
    await expectGone(node, ...pods.slice(0, 3));
  });
});

async function deadNode(count: number): Promise<LabNode> {
  const node = await start();
  await runPods(node, count - 1, { name: "dead" });
  await runPod(node, { name: "busy", containers: [{ name: "main" }] });
  await node.powerCut();
  await node.powerOn();
  return node;
}

/** util-linux' script provides a terminal, and types the input. */
function onTerminal(node: LabNode, typed: string, args: readonly string[]) {
  const command = [UNGHOST, ...args].join(" ");
  return node.exec(["script", "--quiet", "--return", "--command", command, "/dev/null"], {
    stdin: typed,
    timeoutMs: GUARD_MS,
  });
}
