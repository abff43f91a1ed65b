import { existsSync, readFileSync } from "node:fs";
import { describe, expect } from "vitest";
import { liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { leakedLease } from "../../lab/faults/host-local.ts";
import { orphanedCache } from "../../lab/faults/orphaned-cache.ts";
import { runPods } from "../../lab/pods.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, heal, isQuarantined, listedIds } from "./healed-node.ts";

const DAEMON_DOWN = "dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: connection refused";
const CALLS = "/opt/cni/gate/calls";
const GHOSTS = 20;
const AT_A_TIME = 4;

describe.skipIf(NO_REAL_NODE !== undefined)(
  "heal while the network's daemon is down",
  { timeout: HANG_GUARD_MS },
  () => {
    eachRuntime("stops calling the plugin, names the daemon, and continues with the rest", async (runtime) => {
      const node = await start({ runtime });
      const pods = await runPods(node, GHOSTS, { name: "ghost" });
      const order = `echo "$CNI_CONTAINERID" >>${CALLS}\n${refusal(DAEMON_DOWN)}`;
      for (const { ref } of pods) await orderAtGate(node, "DEL", ref.name, order);
      await node.powerCut();
      await node.powerOn();
      const lease = await leakedLease(node);
      const orphan = await orphanedCache(node);

      const { code, report } = await heal(node, [...AT_ONCE, "--concurrency", String(AT_A_TIME)]);

      expect(code).toBe(1);
      const tried = readFileSync(node.path(CALLS), "utf8").trim().split("\n");
      // Three consecutive failures are enough; those in flight by then could not be cancelled.
      expect(tried.length).toBeLessThanOrEqual(3 + AT_A_TIME);
      expect(new Set(tried).size).toBe(tried.length);
      const skipped = report.actions?.filter((action) => action.code === "shared-cause") ?? [];
      expect(skipped.length).toBe(GHOSTS - tried.length);
      for (const { reason } of skipped) {
        expect(reason).toContain("cni-daemon-socket-down");
        expect(reason).toContain("kube-ovn-daemon.sock");
      }
      expect(existsSync(node.path(lease.path ?? ""))).toBe(false);
      expect(isQuarantined(node, orphan.path ?? "")).toBe(true);
      expect(await listedIds(node)).toHaveLength(GHOSTS);

      for (const { ref } of pods) await liftOrder(node, "DEL", ref.name);
      await heal(node);
      // The log still has those that were tried, and they are reported as manual.
      expect((await listedIds(node)).filter((id) => !tried.includes(id))).toEqual([]);
    });
  },
);
