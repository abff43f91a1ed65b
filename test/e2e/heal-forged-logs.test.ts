import { appendFileSync, chownSync } from "node:fs";
import { describe, expect } from "vitest";
import { runPod } from "../../lab/pods.ts";
import { sandboxName } from "../../src/node/types/ids.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectAlive, expectGone, heal } from "./healed-node.ts";
import { kubeletKnows, runKubelet } from "./scanned-node.ts";

const KLOG = "E1116 03:22:07.101010     811";
const RPC = "rpc error: code = Unknown desc = ";
/** Kubelet may still recover dead sandboxes. */
const PATIENT = ["--min-age", "1h"] as const;

const quoted = JSON.stringify;

describe.skipIf(NO_REAL_NODE !== undefined)("a log line about a sandbox", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("has no effect when a pod wrote it, and counts when kubelet reports it", async (runtime) => {
    const node = await start({ runtime });
    const victim = await runPod(node, { name: "victim", containers: [{ name: "main" }] });
    await node.powerCut();
    await node.powerOn();
    kubeletKnows(node, victim);
    await runKubelet(node);
    const id = victim.sandboxId;
    const name = sandboxName(victim.ref);
    const lock = `${RPC}failed to reserve sandbox name "${name}": name "${name}" is reserved for "${id}"`;
    const del = `${RPC}failed to destroy network for sandbox "${id}": plugin type="bridge" failed (delete): netplugin failed with no error message: signal: killed`;
    const genuine = [
      `${KLOG} log.go:32] "StopPodSandbox from runtime service failed" err=${quoted(del)} podSandboxID="${id}"`,
      `${KLOG} log.go:32] "RunPodSandbox from runtime service failed" err=${quoted(lock)}`,
    ];
    const log = node.path("/var/log/kubelet.log");
    const kept = { ready: [], kept: [victim] };

    const hook = (text: string) =>
      `${KLOG} handlers.go:80] "Exec lifecycle hook failed" err=${quoted(`command exited with 1: ${text}`)} message=${quoted(text)}`;
    const forged = [
      ...[del, lock, ...genuine].map(hook),
      ...genuine.flatMap((line) => [`${KLOG} prober.go:107] "Probe failed" output=<`, `\t${line}`, " >"]),
      ...genuine.map((line) => `2026-11-16T03:22:07.1Z stdout F ${line}`),
    ];
    appendFileSync(log, `${forged.join("\n")}\n`);
    const { report } = await heal(node, PATIENT);
    expect(report.actions?.filter(({ outcome }) => outcome !== "skipped")).toEqual([]);
    expect(JSON.stringify(report)).not.toContain("del-timeout-killed");
    await expectAlive(node, kept);

    appendFileSync(log, `${genuine.join("\n")}\n`);
    chownSync(log, 65534, 65534);
    const foreign = await heal(node, PATIENT);
    expect(foreign.report.actions?.filter(({ outcome }) => outcome !== "skipped")).toEqual([]);
    expect(foreign.report.problems).toContainEqual(
      expect.objectContaining({
        source: "logs",
        problem: expect.stringContaining("/var/log/kubelet.log is owned by uid"),
      }),
    );
    await expectAlive(node, kept);

    chownSync(log, 0, 0);
    const believed = await heal(node, PATIENT);
    expect(believed.report.actions).toMatchObject([
      { finding: `del-timeout-killed/${id}`, action: expect.stringContaining("remove-sandbox"), outcome: "healed" },
    ]);
    await expectGone(node, victim);
  });
});
