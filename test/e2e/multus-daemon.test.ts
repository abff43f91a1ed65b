import { describe, expect } from "vitest";
import { runMultusPod } from "../../lab/faults/multus.ts";
import { hungCreations, wedgeMultusDaemon } from "../../lab/faults/thick-multus.ts";
import {
  killMultusDaemon,
  MULTUS_SOCKET,
  multusDaemonPid,
  startMultusDaemon,
  useThickMultus,
} from "../../lab/multus-thick.ts";
import type { LabNode } from "../../lab/node.ts";
import { until } from "../../lab/poll.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, start } from "../lab/real-node.ts";
import { HAS_MULTUS, WHY_NO_MULTUS } from "./multus-node.ts";
import { scan } from "./scanned-node.ts";

const ID = `multus-daemon-down-or-wedged/${MULTUS_SOCKET}`;

async function daemonFinding(node: LabNode): Promise<NodeReport["findings"][number]> {
  return await until("the scan names the multus daemon", HANG_GUARD_MS, async () =>
    (await scan(node)).findings.find(({ id }) => id === ID),
  );
}

describe.skipIf(!HAS_MULTUS)(`a hung multus daemon${WHY_NO_MULTUS}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("is one finding with its pid and the waiting pods, stopped or gone", async (runtime) => {
    const node = await start({ runtime });
    await useThickMultus(node);
    await runMultusPod(node, { name: "runs" });
    expect((await scan(node)).findings).toEqual([]);

    await wedgeMultusDaemon(node);
    const pid = multusDaemonPid(node);
    const hung = await hungCreations(node, 3, HANG_GUARD_MS);
    const named = hung.refs.map(({ name }) => `default/${name}`).toSorted();
    const wedged = await until("every waiting pod is named", HANG_GUARD_MS, async () => {
      const finding = await daemonFinding(node);
      return named.every((pod) => finding.blocks.join().includes(pod)) ? finding : undefined;
    });
    expect(wedged.summary).toContain(`(pid ${pid}) does not answer`);
    expect(wedged.evidence.map(({ fact }) => fact).join()).toContain("is stopped (state T)");
    expect(wedged.treatment.automatic).toBe(false);

    await killMultusDaemon(node);
    const gone = await daemonFinding(node);
    expect(gone.summary).toContain(`no process listens on ${MULTUS_SOCKET}`);

    await startMultusDaemon(node);
    await hung.answered;
    expect((await scan(node)).findings.filter(({ id }) => id === ID)).toEqual([]);
    await runMultusPod(node, { name: "again" });
    expect(await node.cri.listPodSandbox(undefined, CALL)).not.toHaveLength(0);
  });
});
