import { readFileSync } from "node:fs";
import { describe, expect } from "vitest";
import { emptyResultCache, halfWrittenResultCache } from "../../lab/faults/result-cache.ts";
import { finishedPod, runPod, runPods } from "../../lab/pods.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import {
  AT_ONCE,
  cniFiles,
  expectAlive,
  expectGone,
  heal,
  healAll,
  isQuarantined,
  listedIds,
  quarantine,
  unghostIn,
} from "./healed-node.ts";
import { company } from "./scanned-node.ts";

describe.skipIf(NO_REAL_NODE !== undefined)("heal after a power cut", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("removes everything that died with it and saves the logs, and nothing else", async (runtime) => {
    const node = await start({ runtime });
    const bare = await runPods(node, 40, { name: "bare" });
    const words = ["sh", "-c", 'echo "written by $0"; sleep 1000000000', "main"];
    const busy = await runPods(node, 10, { name: "busy", containers: [{ name: "main", command: words }] });
    const done = await finishedPod(node, { name: "finished" });
    await node.powerCut();
    await node.powerOn();
    const beside = await company(node);

    const report = await healAll(node);

    expect(report.actions).toHaveLength(50);
    const survivors = { ...beside, kept: [...beside.kept, done] };
    await expectAlive(node, survivors);
    const left = [...survivors.ready, ...survivors.kept].map(({ sandboxId }) => sandboxId);
    expect(new Set(await listedIds(node))).toEqual(new Set(left));
    const files = cniFiles(node);
    for (const { sandboxId } of [...bare, ...busy]) expect(files.join("\n")).not.toContain(sandboxId);
    const saved = [...quarantine(node).values()].filter((content) => content.includes("written by main"));
    expect(saved).toHaveLength(10);
    await expectGone(node, ...bare.slice(0, 2), ...busy.slice(0, 2));
  });

  eachRuntime("moves a broken result cache to quarantine, and undo puts it back", async (runtime) => {
    const node = await start({ runtime });
    const emptied = await runPod(node, { name: "emptied", containers: [{ name: "main" }] });
    const halved = await runPod(node, { name: "halved" });
    await node.powerCut();
    const { path: emptyPath = "" } = await emptyResultCache(node, emptied);
    const { path: halfPath = "" } = await halfWrittenResultCache(node, halved);
    const half = readFileSync(node.path(halfPath), "latin1");
    await node.powerOn();
    const beside = await company(node);

    const report = await healAll(node);

    await expectGone(node, emptied, halved);
    expect([isQuarantined(node, emptyPath), isQuarantined(node, halfPath)]).toEqual([true, true]);
    await expectAlive(node, beside);

    const journalId = report.actions?.find(({ finding }) => finding.includes(halved.sandboxId))?.journalId ?? "";
    await node.writeFile(halfPath, "something newer");
    const refused = await unghostIn(node, ["undo", journalId]);
    expect(refused.code).not.toBe(0);
    expect(readFileSync(node.path(halfPath), "latin1")).toBe("something newer");
    await node.check(["rm", halfPath]);
    const undone = await unghostIn(node, ["undo", journalId]);
    expect([undone.code, readFileSync(node.path(halfPath), "latin1")]).toEqual([0, half]);
  });

  eachRuntime("removes finished pods with --all-dead, and saves their logs", async (runtime) => {
    const node = await start({ runtime });
    const done = await finishedPod(node, { name: "finished" });
    const ignored = await finishedPod(node, { name: "ignored", annotations: { "unghost.dev/ignore": "true" } });
    const dead = await runPod(node, { name: "dead", annotations: { "unghost.dev/ignore": "true" } });
    await node.powerCut();
    await node.powerOn();
    const ready = await runPod(node, { name: "ready" });

    expect((await heal(node)).report.actions).toEqual([]);
    await healAll(node, [...AT_ONCE, "--all-dead"]);

    await expectGone(node, done);
    expect([...quarantine(node).values()].filter((content) => content.includes("last line"))).toHaveLength(1);
    await expectAlive(node, { ready: [ready], kept: [ignored, dead] });
  });
});
