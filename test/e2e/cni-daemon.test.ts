import { describe, expect } from "vitest";
import {
  DELEGATE_SOCKET,
  delegateDaemonPid,
  delegateRequests,
  restartDelegateDaemon,
} from "../../lab/delegate-daemon.ts";
import { runMultusPod } from "../../lab/faults/multus.ts";
import { addsUnderWay, hangDelegateDaemon, hungCreations } from "../../lab/faults/thick-multus.ts";
import { logCreateTimeout } from "../../lab/kubelet-log.ts";
import { useThickMultus } from "../../lab/multus-thick.ts";
import type { LabNode } from "../../lab/node.ts";
import { sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, start } from "../lab/real-node.ts";
import { expectAlive, unghostIn } from "./healed-node.ts";
import { HAS_MULTUS, WHY_NO_MULTUS } from "./multus-node.ts";
import { kubeletKnows, runKubelet } from "./scanned-node.ts";
import { reportOf } from "./unghost.ts";

/** More than a line lists. */
const PODS = 7;

async function scanAsIs(node: LabNode): Promise<NodeReport> {
  return reportOf(await unghostIn(node, ["scan", "--timeout", "30s", "-o", "json"]));
}

describe.skipIf(!HAS_MULTUS)(`the daemon of a network plugin${WHY_NO_MULTUS}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("that hangs is the only finding, and no call that waits for it is ended", async (runtime) => {
    const node = await start({ runtime });
    await useThickMultus(node);
    const running = await runMultusPod(node, { name: "runs", containers: [{ name: "main" }] });
    await runKubelet(node);
    const daemon = delegateDaemonPid(node);
    await hangDelegateDaemon(node);
    const before = delegateRequests(node).length;
    const { refs, answered } = await hungCreations(node, PODS, CALL.timeoutMs);
    const haveAsked = () => delegateRequests(node).length >= before + PODS || undefined;
    await until("all delegates wait for their daemon", HANG_GUARD_MS, haveAsked);
    kubeletKnows(node, running, ...refs.map((ref) => ({ ref })));
    for (const ref of refs) logCreateTimeout(node, ref);

    const hangs = await until("the daemon is found", HANG_GUARD_MS, async () => {
      const report = await scanAsIs(node);
      expect(report.verdict).not.toBe("healthy");
      return report.findings.length > 0 ? report : undefined;
    });
    expect(hangs.findings).toMatchObject([
      {
        class: "cni-daemon-socket-down",
        subject: { path: DELEGATE_SOCKET },
        blocks: [expect.stringMatching(/^7 pods: default\/hung-0, .* and 2 more$/)],
        blockedPods: refs.map(({ name, namespace, uid }) => ({ namespace, name, uid })),
        treatment: { automatic: false },
      },
    ]);
    expect(hangs.findings[0]?.evidence[0]?.fact).toContain(`pid ${daemon} has listened on ${DELEGATE_SOCKET}`);
    const heal = reportOf(await unghostIn(node, ["heal", "--yes", "--timeout", "30s", "-o", "json"]));
    expect(heal.actions?.map(({ outcome }) => outcome)).toEqual(["skipped"]);
    expect(addsUnderWay(node).size).toBe(PODS);

    await restartDelegateDaemon(node);
    await answered;
    for (const ref of refs) await node.cri.runPodSandbox(sandboxConfig(ref, ref), CALL);
    const after = await scanAsIs(node);
    expect([after.verdict, after.findings]).toEqual(["healthy", []]);
    await expectAlive(node, { ready: [running], kept: [] });
  });
});
