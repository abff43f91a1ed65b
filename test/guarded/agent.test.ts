import { existsSync, readlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { GUARD_BIN_DIR, GUARD_LAUNCHER } from "../../src/guard/home.ts";
import { addresses, installGuard, queued } from "../e2e/guarded-node.ts";
import { BY_TRIGGERS_ALONE } from "../e2e/running-agent.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { CALL, start } from "../lab/real-node.ts";

/** Several of the agent's intervals. */
const KEPT_MS = 120_000;

test("the agent repeats queued DELs although no plugin is called, and gives a new plugin its entry", async () => {
  const node = await start();
  await installGuard(node);
  await orderAtGate(node, "ADD", "web", `"$0.real" >/dev/null; ${refusal("a later part failed")}`);
  await orderAtGate(node, "DEL", "web", refusal("dial unix /x: connect: connection refused"));
  const ref = podRef({ name: "web" });
  await expect(node.cri.runPodSandbox(sandboxConfig(ref, ref), CALL)).rejects.toThrow("a later part failed");
  await liftOrder(node, "DEL", "web");
  await node.writeFile("/opt/cni/bin/new-plugin", "#!/bin/sh\n", 0o755);
  expect([queued(node).length, addresses(node).length]).toEqual([1, 1]);

  await node.check([
    "sh",
    "-c",
    `setsid ${UNGHOST} agent ${BY_TRIGGERS_ALONE.map((word) => `'${word}'`).join(" ")} </dev/null >>/var/log/agent.log 2>&1 &`,
  ]);

  await until("the queue is empty", KEPT_MS, () => queued(node).length === 0 || undefined);
  expect(addresses(node)).toEqual([]);
  const entry = node.path(`${GUARD_BIN_DIR}/new-plugin`);
  expect([existsSync(node.path("/opt/cni/bin/new-plugin")), readlinkSync(entry)]).toEqual([true, GUARD_LAUNCHER]);
});
