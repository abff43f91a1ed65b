import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import { useThickMultusIn } from "../../lab/cluster/multus.ts";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { DELEGATE_SOCKET, restartDelegateDaemon } from "../../lab/delegate-daemon.ts";
import { hangDelegateDaemon } from "../../lab/faults/thick-multus.ts";
import { until } from "../../lab/poll.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { cluster, HANG_GUARD_MS, scanOn, storyRuntimes, WAIT_MS } from "./lab-cluster.ts";
import { REPORTED_MS, reportedByAgent } from "./reported-by-agent.ts";

const RUNNING = names("runs", 6);
const DELETED = names("deleted", 4);
const NEW = names("new", 12);
const runtimes = storyRuntimes(["1.6", "2.1", "2.3"], ["2.1"]);

test.each(runtimes)(
  "the daemon of a thick multus delegate hangs: the report names cause and blocked pods, and the node recovers with it (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime, kubelet: { runtimeRequestTimeout: "20s" } });
    const { node } = story;
    await useThickMultusIn(story);
    await story.apply(podObjects([...RUNNING, ...DELETED], node.name));
    const before = await story.waitForPods(RUNNING.length + DELETED.length, isReady);
    const agent = await agentOn(node);
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");

    await hangDelegateDaemon(node.lab);
    await story.apply(podObjects(NEW, node.name));
    await story.kubectl("delete", "pod", "--wait=false", ...DELETED);
    const log = node.lab.path("/var/log/kubelet.log");
    await until("kubelet's first attempt to create a pod fails", WAIT_MS, () =>
      /CreatePodSandbox.*new-\d+/.test(readFileSync(log, "utf8")) ? true : undefined,
    );

    const report = await until("the scan names cause and pods", REPORTED_MS, async () => {
      const now = await scanOn(node);
      const finding = now.findings.find(({ subject }) => subject.path === DELEGATE_SOCKET);
      const blocked = finding?.blockedPods?.map(({ name }) => name) ?? [];
      return NEW.every((pod) => blocked.includes(pod)) ? now : undefined;
    });
    expect(report.verdict).not.toBe("healthy");
    expect(report.podCreation?.able).toBe("no");
    const blocked = report.findings.flatMap(({ blockedPods = [] }) => blockedPods.map(({ name }) => name));
    expect([...new Set(blocked)].toSorted()).toEqual(NEW.toSorted());
    await reportedByAgent(story, "cni-daemon-socket-down");

    await restartDelegateDaemon(node.lab);
    const after = await story.waitForPods(RUNNING.length + NEW.length, isReady);
    expect(containersOf(after, RUNNING)).toEqual(containersOf(before, RUNNING));
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    await healthyScan(() => scanOn(node));
  },
  HANG_GUARD_MS,
);
