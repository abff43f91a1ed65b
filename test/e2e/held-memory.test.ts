import { describe, expect, onTestFinished, test } from "vitest";
import { type FuseOperation, holdMemory, mountHungFuse, whyNoFuse } from "../../lab/faults/hung-fuse.ts";
import { type LabNode, startNode } from "../../lab/node.ts";
import { runPods } from "../../lab/pods.ts";
import { HANG_GUARD_MS, NO_REAL_NODE } from "../lab/real-node.ts";
import { AGENT_UNTIL_STOPPED } from "./agent-script.ts";
import { AT_ONCE, expectGone, heal, unghostIn } from "./healed-node.ts";
import { UNPRIVILEGED } from "./impostor.ts";
import { problemsOf, reportOf, UNGHOST } from "./unghost.ts";

const REASON = NO_REAL_NODE ?? whyNoFuse();
const CNI = { CNI_COMMAND: "ADD", CNI_CONTAINERID: "0123456789abcdef".repeat(4) };

/** Without the watch of the other tests, which reads the memory of every process and would wait as long as `ps`. */
async function start(): Promise<LabNode> {
  const node = await startNode();
  onTestFinished(() => node.destroy());
  return node;
}

async function held(node: LabNode) {
  const ofUser = await holdMemory(node, { name: "containerd-shim", user: UNPRIVILEGED, env: CNI });
  const ofRoot = await holdMemory(node, { name: "bridge", env: CNI });
  return { ofUser, ofRoot };
}

const title = `processes that keep their memory locked${REASON === undefined ? "" : `: skipped, ${REASON}`}`;
describe.skipIf(REASON !== undefined)(title, { timeout: HANG_GUARD_MS }, () => {
  test("scan and heal end, heal what is proven, and name what could not be read", async () => {
    const node = await start();
    const pods = await runPods(node, 2);
    await node.powerCut();
    await node.powerOn();
    const { ofUser, ofRoot } = await held(node);

    const scan = await unghostIn(node, ["scan", "--timeout", "4s", "-o", "json", ...AT_ONCE]);
    const { code, report } = await heal(node);

    const problems = problemsOf(reportOf(scan)).join("\n");
    expect(problems).toContain(`bridge (pid ${ofRoot}) keeps its memory locked`);
    expect(problems).not.toContain(`${ofUser}`);
    expect([code, report.remaining]).toEqual([0, []]);
    await expectGone(node, ...pods);
  });

  test("boot heals by its deadline; the agent answers and stops", async () => {
    const node = await start();
    const pods = await runPods(node, 2);
    await node.powerCut();
    await node.powerOn();
    await held(node);

    const boot = await node.exec([UNGHOST, "boot", "--after", "--no-kube", "--deadline", "20s"], { timeoutMs: 60_000 });
    const agent = await node.exec(["sh", "-c", AGENT_UNTIL_STOPPED], { timeoutMs: 120_000 });

    expect([boot.timedOut, boot.code]).toEqual([false, 0]);
    await expectGone(node, ...pods);
    expect([agent.timedOut, agent.stdout.trim()]).toEqual([false, "exit code 0"]);
  });
});

describe.skipIf(REASON !== undefined)(
  `file systems that do not answer${REASON === undefined ? "" : `: skipped, ${REASON}`}`,
  { timeout: HANG_GUARD_MS },
  () => {
    const mounts: Readonly<Record<string, readonly FuseOperation[]>> = {
      "/var/log/pods": [],
      "/var/lib/kubelet/pods": ["lookup", "getattr", "statfs", "opendir"],
      "/etc/cni/net.d/more": ["lookup", "getattr", "statfs", "opendir", "readdir"],
    };

    test("scan and boot end and name them; the agent answers and stops", async () => {
      const node = await start();
      for (const [point, answers] of Object.entries(mounts)) await mountHungFuse(node, point, answers);

      const scan = await unghostIn(node, ["scan", "--timeout", "4s", "-o", "json", ...AT_ONCE]);
      const boot = await node.exec([UNGHOST, "boot", "--after", "--no-kube", "--deadline", "20s"], {
        timeoutMs: 60_000,
      });
      const agent = await node.exec(["sh", "-c", AGENT_UNTIL_STOPPED], { timeoutMs: 120_000 });

      const problems = problemsOf(reportOf(scan)).join("\n");
      for (const point of Object.keys(mounts))
        expect(problems).toContain(`mounted at ${point} (fuse.hung) does not answer`);
      expect([boot.timedOut, boot.code]).toEqual([false, 0]);
      expect([agent.timedOut, agent.stdout.trim()]).toEqual([false, "exit code 0"]);
    });

    const everything = [
      "lookup",
      "getattr",
      "statfs",
      "opendir",
      "readdir",
      "releasedir",
      "open",
      "read",
      "flush",
      "release",
    ] as const;

    test("one that stops after it was probed: scan, heal and boot end and name it; the agent answers and stops", async () => {
      const node = await start();
      // The probe closes the directory.
      await mountHungFuse(node, "/var/lib/cni/results", everything, "releasedir");

      const scan = await unghostIn(node, ["scan", "--timeout", "4s", "-o", "json", ...AT_ONCE]);
      const healed = await unghostIn(node, ["heal", "--yes", "--timeout", "4s", ...AT_ONCE]);
      const boot = await node.exec([UNGHOST, "boot", "--after", "--no-kube", "--deadline", "20s"], {
        timeoutMs: 60_000,
      });
      const agent = await node.exec(["sh", "-c", AGENT_UNTIL_STOPPED], { timeoutMs: 120_000 });

      const report = reportOf(scan);
      expect(problemsOf(report).join("\n")).toContain("mounted at /var/lib/cni/results (fuse.hung) does not answer");
      expect([scan.code, report.verdict]).toEqual([2, "unknown"]);
      expect([healed.timedOut, healed.code]).toEqual([false, 2]);
      expect([boot.timedOut, boot.code]).toEqual([false, 0]);
      expect([agent.timedOut, agent.stdout.trim()]).toEqual([false, "exit code 0"]);
    });

    test("below the state directory: every command that uses it ends at once and names it", async () => {
      const node = await start();
      await node.check(["mkdir", "-p", "/var/lib/unghost/journal"]);
      await mountHungFuse(node, "/var/lib/unghost", []);

      for (const args of [
        ["scan", "--no-kube"],
        ["heal", "--yes", "--no-kube"],
        ["undo", "--last"],
        ["history"],
        ["quarantine", "ls"],
        ["doctor"],
        ["boot", "--after", "--no-kube"],
        ["agent", "--no-kube"],
      ]) {
        const { code, timedOut, stderr } = await node.exec([UNGHOST, ...args], { timeoutMs: 60_000 });
        expect([args[0], timedOut, code]).toEqual([args[0], false, 64]);
        expect(stderr).toContain("mounted at /var/lib/unghost (fuse.hung) does not answer");
      }
      const elsewhere = await unghostIn(node, ["scan", "--no-kube", "--state-dir", "/run/other"]);
      expect(elsewhere.stdout).toContain("HEALTHY");
    });

    test("below the directory that kubelet was started with, and nowhere else", async () => {
      const node = await start();
      const asKubelet = `ln -s "$(readlink -f "$(command -v python3)")" /tmp/kubelet
setsid /tmp/kubelet -c 'import time; time.sleep(1e6)' --root-dir=/data/kubelet </dev/null >/dev/null 2>&1 &`;
      await node.check(["sh", "-c", asKubelet]);
      await mountHungFuse(node, "/data/kubelet/pods", []);

      const scan = await unghostIn(node, ["scan", "--timeout", "4s", "-o", "json", "--min-age", "0s"]);

      expect(problemsOf(reportOf(scan)).join("\n")).toContain(
        "mounted at /data/kubelet/pods (fuse.hung) does not answer",
      );
    });
  },
);
