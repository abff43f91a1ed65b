import { describe, expect } from "vitest";
import { run } from "../../lab/command.ts";
import { hungAdd, pluginOf } from "../../lab/faults/hung-plugin.ts";
import type { LabNode } from "../../lab/node.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { reportOf, UNGHOST } from "./unghost.ts";

/**
 * Runs unghost like a pod without hostPID: in its own pid and mount namespaces, with the node below /mnt. Beside it
 * runs another process with the pid `$PID`, which belongs to another process in the node; whether it survives is
 * printed to stderr.
 */
const AS_A_POD = `
mount --rbind / /mnt && mount -t proc proc /proc || exit 99
while sleep 1000 & [ $! -lt "$PID" ]; do kill -KILL $!; done
[ $! -eq "$PID" ] || exit 98
"$@"
code=$?
kill -0 "$PID" && echo "bystander lives" >&2
exit $code`;

function asPod(node: LabNode, pid: number, args: readonly string[]) {
  const inOwnNamespaces = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "sh", "-c", AS_A_POD, "sh"];
  return run(["nsenter", "-t", String(node.initPid), "-m", "-n", "--", ...inOwnNamespaces, UNGHOST, ...args], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", PID: String(pid) },
    timeoutMs: HANG_GUARD_MS,
  });
}

describe.skipIf(NO_REAL_NODE !== undefined)(
  "in another pid namespace than the node's",
  { timeout: HANG_GUARD_MS },
  () => {
    eachRuntime("no process is signalled, and scan and heal report why", async (runtime) => {
      const node = await start({ runtime });
      const hung = await hungAdd(node, { name: "web" });
      const where = ["--host-root", "/mnt", "--no-kube", "--min-age", "0s", "--inflight-grace", "0s", "-o", "json"];

      const scanned = await asPod(node, hung.pid, ["scan", ...where]);
      const healed = await asPod(node, hung.pid, ["heal", "--yes", ...where]);

      const problem = {
        source: "processes",
        code: "foreign-pid-namespace",
        next: expect.stringContaining("hostPID: true"),
      };
      expect(reportOf(scanned).problems).toContainEqual(expect.objectContaining(problem));
      expect(reportOf(healed).actions).toContainEqual(
        expect.objectContaining({ outcome: "refused", code: "foreign-pid-namespace" }),
      );
      expect(healed.stderr).toContain("bystander lives");
      expect(pluginOf(node, "ADD", "web")?.pid).toBe(hung.pid);
      const inside = await node.exec([UNGHOST, "scan", "--no-kube", "-o", "json"]);
      expect(reportOf(inside).problems.filter(({ code }) => code === "foreign-pid-namespace")).toEqual([]);
    });
  },
);
