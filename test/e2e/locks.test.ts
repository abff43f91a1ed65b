import { once } from "node:events";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { CNI_BIN_DIR } from "../../lab/cni-config.ts";
import { leakedNetns } from "../../lab/faults/leaked-netns.ts";
import { leaseWithStuckPlugin } from "../../lab/faults/stuck-plugin.ts";
import { until } from "../../lab/poll.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, heal } from "./healed-node.ts";
import { startAgent } from "./running-agent.ts";
import { reportOf, simulatedNode, UNGHOST, unghost } from "./unghost.ts";

const BOOT_ID = "/proc/sys/kernel/random/boot_id";
const QUIET = ["--no-kube", "--listen", ""] as const;

describe.skipIf(NO_REAL_NODE !== undefined)("run lock", { timeout: HANG_GUARD_MS }, () => {
  test("is free at once when its holder vanishes with its pid namespace", async () => {
    const node = await start();
    await leaseWithStuckPlugin(node, "ignores SIGTERM", "10.88.200.1");
    // A new /proc shows the machine's boot id, and the run would count as one of another boot.
    await node.check(["sh", "-c", `cat ${BOOT_ID} >/var/boot-id`]);
    const run = `mount --bind /var/boot-id ${BOOT_ID} && exec ${UNGHOST} heal --yes ${AT_ONCE.join(" ")}`;
    const inOwnNamespace = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", run];

    const killed = node.exec(inOwnNamespace, { timeoutMs: 6000 });
    await until("the run holds the lock", HANG_GUARD_MS, () => {
      try {
        return readFileSync(node.path("/var/lib/unghost/lock"), "utf8") || undefined;
      } catch {
        return undefined;
      }
    });
    expect((await killed).timedOut).toBe(true);
    // From here on only the lock can block.
    await node.writeFile(`${CNI_BIN_DIR}/stuck-10.88.200.1`, "#!/bin/sh\n", 0o755);
    const { code, report } = await heal(node);

    expect([code, report.verdict]).toEqual([0, "healthy"]);
  });

  test("needs no program of the node: neither flock(1) nor umount(8)", async () => {
    const node = await start();
    const { path = "" } = await leakedNetns(node);
    const command = ["heal", "--yes", "-o", "json", ...AT_ONCE];

    const healed = await node.exec(["env", "PATH=/nowhere", UNGHOST, ...command], { timeoutMs: HANG_GUARD_MS });

    expect([healed.code, reportOf(healed).actions?.map(({ outcome }) => outcome)]).toEqual([0, ["healed"]]);
    expect(await node.check(["ls", "/run/netns"])).not.toContain(basename(path));
    expect(await node.check(["cat", "/proc/self/mountinfo"])).not.toContain(path);
  });
});

describe("a second agent on the node", { timeout: HANG_GUARD_MS }, () => {
  test("refuses with exit code 3 and names the first, with any state directory; a killed one blocks nothing", async () => {
    const node = await simulatedNode();
    // The agent's engine has no FFI: a child takes the lock for it, without flock(1).
    const first = startAgent([...QUIET, ...node.where], { PATH: "/nowhere" });
    await first.logged("agent started");

    for (const more of [[], ["--state-dir", join(node.root, "elsewhere")]]) {
      const { code, stderr } = await unghost(["agent", ...QUIET, ...node.where, ...more]);
      expect([code, stderr]).toEqual([3, expect.stringContaining(`process ${first.process.pid} holds`)]);
    }

    const ended = once(first.process, "exit");
    first.signal("SIGKILL");
    await ended;
    const next = startAgent([...QUIET, ...node.where]);
    await next.logged("agent started");
    expect(await next.stop()).toBe(0);
  });
});
