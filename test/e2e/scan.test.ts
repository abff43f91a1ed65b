import { rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { CommandResult } from "../../lab/command.ts";
import type { LabNode } from "../../lab/node.ts";
import type { ExecOptions } from "../../lab/node-exec.ts";
import { finishedPod, runPods } from "../../lab/pods.ts";
import { CONTAINERD_SOCKET } from "../../lab/runtime-config.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { classesOf, GUARD_MS, problemsOf, reportOf, UNGHOST } from "./unghost.ts";

const SCAN = ["scan", "--runtime-endpoint", `unix://${CONTAINERD_SOCKET}`, "--no-kube", "-o", "json"];
const UNPRIVILEGED = 65534;

function scan(node: LabNode, args: readonly string[] = SCAN, options: ExecOptions = {}): Promise<CommandResult> {
  return node.exec([UNGHOST, ...args], { timeoutMs: GUARD_MS, ...options });
}

describe.skipIf(NO_REAL_NODE !== undefined)("scan of a real node", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("distinguishes running, finished and dead-after-crash", async (runtime) => {
    const node = await start({ runtime });
    const pods = await runPods(node, 3, { containers: [{ name: "app" }] });
    const finished = await finishedPod(node);

    const before = await scan(node);

    expect(before.code).toBe(0);
    const healthy = reportOf(before);
    expect(healthy.verdict).toBe("healthy");
    expect(healthy.node).toBe(node.hostname);
    expect(healthy.sandboxes).toEqual({ total: 4, ready: 3, notReady: 1 });
    expect(healthy.findings).toEqual([]);
    expect(healthy.problems).toEqual([]);
    expect(healthy.kept.map(({ sandboxId }) => sandboxId)).toEqual([finished.sandboxId]);

    await node.powerCut();
    await node.powerOn();
    const after = await scan(node);

    expect(after.code).toBe(1);
    const report = reportOf(after);
    expect(report.verdict).toBe("ghosts");
    expect(report.boot.id).not.toBe(healthy.boot.id);
    expect(classesOf(report)).toEqual(["dead-after-crash", "dead-after-crash", "dead-after-crash"]);
    expect(report.findings.map(({ subject }) => subject.sandboxId).sort()).toEqual(
      pods.map(({ sandboxId }) => sandboxId).sort(),
    );
    for (const { evidence, blocks, treatment } of report.findings) {
      expect(evidence.map(({ source }) => source)).toEqual(expect.arrayContaining(["cri", "processes", "containerd"]));
      expect(blocks).not.toEqual([]);
      expect(treatment.steps).not.toEqual([]);
    }
    expect(report.kept.map(({ sandboxId, reason }) => [sandboxId, reason])).toEqual([
      [finished.sandboxId, expect.stringContaining("finished")],
    ]);
  });

  eachRuntime("changes nothing on the node", async (runtime) => {
    const node = await start({ runtime });
    await runPods(node, 2);
    await node.powerCut();
    await node.powerOn();
    const listing = ["sh", "-c", "find /var/lib/cni /var/lib/unghost /etc -type f | sort | xargs sha256sum"];
    const before = await node.check(listing);

    await scan(node);

    expect(await node.check(listing)).toBe(before);
    expect((await node.cri.listPodSandbox(undefined, { timeoutMs: GUARD_MS })).length).toBe(2);
  });

  test("finds the runtime on its own", async () => {
    const node = await start();

    const ran = await scan(node, ["scan", "-o", "json"]);

    expect(ran.code).toBe(0);
    expect(reportOf(ran).runtime).toMatchObject({ name: "containerd", endpoint: `unix://${CONTAINERD_SOCKET}` });
  });

  test("without a runtime exits 2 and lists the searched sockets", async () => {
    const node = await start();
    await node.stopRuntime();

    const ran = await scan(node, ["scan", "--no-kube", "-o", "json"]);

    expect(ran.code).toBe(2);
    const report = reportOf(ran);
    expect(report.verdict).toBe("unknown");
    expect(report.runtime.reachable).toBe(false);
    expect(problemsOf(report)).toEqual([
      expect.stringMatching(/^cri: no container runtime found: no socket at .*containerd\.sock.*\| Start the runtime/),
    ]);
  });

  test("with a stale socket of a dead runtime reports connection refused", async () => {
    const node = await start();
    await node.killRuntime();

    const ran = await scan(node);

    expect(ran.code).toBe(2);
    expect(problemsOf(reportOf(ran))).toEqual([
      expect.stringMatching(/^cri: connection refused at .*: no process listens \| The runtime is down or restarting/),
    ]);
  });

  test("by a user without root exits 2 and asks for root", async () => {
    const node = await start();
    await runPods(node, 1);

    const ran = await scan(node, SCAN, { user: UNPRIVILEGED });

    expect(ran.code).toBe(2);
    const problems = problemsOf(reportOf(ran));
    expect(problems).toContainEqual(expect.stringMatching(/^cri: no permission to reach .* \| Run unghost as root/));
  });

  test("with an unreadable directory exits 2, with the path and the next step", async () => {
    const node = await start();
    await runPods(node, 1);
    await node.check(["sh", "-c", `chmod 711 /run/containerd; chmod 666 ${CONTAINERD_SOCKET}`]);
    await node.check(["chmod", "700", "/var/lib/cni/results"]);

    const ran = await scan(node, SCAN, { user: UNPRIVILEGED });

    expect(ran.code).toBe(2);
    const report = reportOf(ran);
    expect(report.runtime.reachable).toBe(true);
    const problems = problemsOf(report);
    expect(problems).toContainEqual(
      expect.stringMatching(/^cni results: \/var\/lib\/cni\/results may not be read .* \| run unghost as root/),
    );
  });

  test("never reports healthy while a deciding source is missing", async () => {
    const node = await start();
    rmSync(node.path("/var/lib/cni/results"), { recursive: true, force: true });
    await node.writeFile("/var/lib/cni/results", "a file where a directory belongs");

    const ran = await scan(node);

    expect(ran.code).toBe(2);
    expect(problemsOf(reportOf(ran))).toContainEqual(expect.stringContaining("/var/lib/cni/results"));
  });
});
