import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { useThickMultusIn } from "../../lab/cluster/multus.ts";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { unwedgeMultusDaemon, wedgeMultusDaemon } from "../../lab/faults/thick-multus.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import {
  cluster,
  HANG_GUARD_MS,
  hasFailedToStop,
  KUBELET_LOG,
  namedIn,
  scanOn,
  stopFails,
  storyRuntimes,
} from "./lab-cluster.ts";

const RUNNING = names("runs", 3);
const DELETED = names("deleted", 4);
const runtimes = storyRuntimes(["1.6", "2.1", "2.3"], ["2.3"]);

test.each(runtimes)(
  "pods stay Terminating because of a hung multus daemon: every scan reports it once, and never that they died with the node (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime, kubelet: { runtimeRequestTimeout: "15s" } });
    const { node } = story;
    await useThickMultusIn(story);
    await story.apply(podObjects([...RUNNING, ...DELETED], node.name));
    const before = await story.waitForPods(RUNNING.length + DELETED.length, isReady);

    await wedgeMultusDaemon(node.lab);
    await story.kubectl("delete", "pod", "--wait=false", ...DELETED);
    await stopFails(node, DELETED);

    // From one failure to the next: these scans include the time between two attempts, in which no plugin waits.
    const logged = readFileSync(node.lab.path(KUBELET_LOG), "utf8").length;
    do {
      const report = await scanOn(node);
      expect(
        report.findings.map(({ class: id }) => id),
        JSON.stringify(report.findings.at(-1)),
      ).toEqual(["multus-daemon-down-or-wedged"]);
      expect(namedIn(report, DELETED)).toEqual(DELETED);
      expect(report.kept.filter(({ pod }) => DELETED.includes(pod?.name ?? ""))).toEqual([]);
    } while (!hasFailedToStop(node, DELETED, logged));

    await unwedgeMultusDaemon(node.lab);
    const after = await story.waitForPods(RUNNING.length, isReady);
    expect(containersOf(after, RUNNING)).toEqual(containersOf(before, RUNNING));
    await healthyScan(() => scanOn(node));
  },
  HANG_GUARD_MS,
);
