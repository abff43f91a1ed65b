import { lchownSync, mkdirSync, renameSync, symlinkSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, runPod } from "../../lab/pods.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, expectGone, heal, listedIds, quarantine } from "./healed-node.ts";

const UNPRIVILEGED = 65534;

/** Like cri-dockerd: the log is in the runtime's directory, and kubelet's directory has a link to it. */
async function linkLog(node: LabNode, pod: LabPod, linkTo = (log: string) => log): Promise<string> {
  const [id = ""] = pod.containerIds;
  const { logPath = "" } = (await node.cri.containerStatus(id, CALL)).status ?? {};
  const target = `/var/lib/docker/containers/${id}/${id}-json.log`;
  mkdirSync(dirname(node.path(target)), { recursive: true });
  renameSync(node.path(logPath), node.path(target));
  symlinkSync(linkTo(target), node.path(logPath));
  return node.path(logPath);
}

describe.skipIf(NO_REAL_NODE !== undefined)("heal of a pod whose log is a link", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("saves the target of root's link, and removes nothing whose log it may not read", async (runtime) => {
    const node = await start({ runtime });
    const containers = [{ name: "main" }];
    const linked = await runPod(node, { name: "linked", containers });
    const foreign = await runPod(node, { name: "foreign", containers });
    const secret = await runPod(node, { name: "secret", containers });
    await node.powerCut();
    await node.powerOn();
    await linkLog(node, linked);
    lchownSync(await linkLog(node, foreign), UNPRIVILEGED, UNPRIVILEGED);
    await linkLog(node, secret, () => "/etc/shadow");

    const { code, report } = await heal(node, [...AT_ONCE, "--all-dead"]);

    expect(code).toBe(1);
    const outcomes = new Map(report.actions?.map((one) => [one.finding.split("/")[1], one]));
    expect(outcomes.get(linked.sandboxId)).toMatchObject({ outcome: "healed" });
    for (const { sandboxId } of [foreign, secret]) {
      expect(outcomes.get(sandboxId)).toMatchObject({ outcome: "refused", code: "logs-not-saved" });
    }
    expect(await listedIds(node)).toEqual([foreign.sandboxId, secret.sandboxId].toSorted());
    const saved = [...quarantine(node).keys()].filter((path) => path.includes("/logs/"));
    expect(saved).toEqual([expect.stringContaining(`/logs/main/${linked.containerIds[0]}-json.log`)]);
    await expectGone(node, linked);
  });
});
