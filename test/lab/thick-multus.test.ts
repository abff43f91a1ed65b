import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { delegateRequests } from "../../lab/delegate-daemon.ts";
import { runMultusPod } from "../../lab/faults/multus.ts";
import {
  addsUnderWay,
  hungCreations,
  rewriteNetworkConf,
  unwedgeMultusDaemon,
  wedgeMultusDaemon,
} from "../../lab/faults/thick-multus.ts";
import {
  killMultusDaemon,
  limitMultusCpu,
  MULTUS_SOCKET,
  startMultusDaemon,
  useThickMultus,
} from "../../lab/multus-thick.ts";
import { until } from "../../lab/poll.ts";
import { ensureMultus } from "../../lab/tools.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE, start } from "./real-node.ts";

const multus = NO_REAL_NODE === undefined ? await ensureMultus() : { available: false as const, reason: NO_REAL_NODE };
const why = multus.available ? "" : `: skipped, ${multus.reason}`;

describe.skipIf(!multus.available)(`thick multus in the lab${why}`, { timeout: HANG_GUARD_MS }, () => {
  test("a stopped daemon blocks every creation, and completes them once it continues", async () => {
    const node = await start();
    await useThickMultus(node);
    await limitMultusCpu(node, 500);
    const before = await runMultusPod(node, { name: "before" });
    expect(delegateRequests(node)).toEqual([`ADD ${before.sandboxId}`]);

    await wedgeMultusDaemon(node);
    const hung = await hungCreations(node, 3, CALL.timeoutMs);
    await rewriteNetworkConf(node);
    expect(addsUnderWay(node).size).toBe(3);
    await unwedgeMultusDaemon(node);

    await hung.answered;
    await until("no plugin is at work any more", HANG_GUARD_MS, () => addsUnderWay(node).size === 0 || undefined);
    expect(await node.cri.listPodSandbox(undefined, CALL)).toHaveLength(4);
  });

  test("without its daemon the shim answers DEL with success and calls no delegate", async () => {
    const node = await start();
    await useThickMultus(node);
    const pod = await runMultusPod(node, { name: "pod" });
    await killMultusDaemon(node);
    expect(existsSync(node.livePath(MULTUS_SOCKET))).toBe(true);

    await node.cri.stopPodSandbox(pod.sandboxId, CALL);

    expect(delegateRequests(node)).toEqual([`ADD ${pod.sandboxId}`]);
    await startMultusDaemon(node);
    await runMultusPod(node, { name: "again" });
  });
});
