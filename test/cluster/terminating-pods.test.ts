import { globSync, readFileSync, truncateSync } from "node:fs";
import { expect, test } from "vitest";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import type { RuntimeVersion } from "../../lab/runtimes.ts";
import { reportOf } from "../e2e/unghost.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { cluster, HANG_GUARD_MS, namedIn, scanOn, stopFails, unghostOn } from "./lab-cluster.ts";

const RUNNING = names("runs", 3);
const DELETED = names("deleted", 6);
const runtimes: readonly RuntimeVersion[] = ["1.6", "2.3"];

test(
  "pods stay Terminating because of a torn CNI cache: scan names them, heal lets kubelet finish (containerd 1.6)",
  async () => {
    const story = await cluster();
    const { node } = story;
    await story.apply(podObjects([...RUNNING, ...DELETED], node.name));
    const before = await story.waitForPods(RUNNING.length + DELETED.length, isReady);
    for (const file of globSync(node.lab.path("/var/lib/cni/results/cbr0-*")))
      if (readFileSync(file, "utf8").includes('"deleted-')) truncateSync(file);

    await story.kubectl("delete", "pod", "--wait=false", ...DELETED);
    await stopFails(node, DELETED);
    const stuck = await scanOn(node);
    expect(stuck.verdict).toBe("ghosts");
    expect(namedIn(stuck, DELETED)).toEqual(DELETED);

    const healing = await unghostOn(node, "heal", "--yes", "-o", "json");
    const { actions = [] } = reportOf(healing);
    expect(healing.code, healing.stdout).toBe(0);
    expect((await scanOn(node)).verdict).toBe("healthy");
    expect(actions.map(({ outcome }) => outcome)).toEqual(DELETED.map(() => "healed"));
    const after = await story.waitForPods(RUNNING.length, isReady);
    expect(containersOf(after, RUNNING)).toEqual(containersOf(before, RUNNING));
    await healthyScan(() => scanOn(node));
  },
  HANG_GUARD_MS,
);

test.each(runtimes)(
  "pods stay Terminating because the plugin fails DEL: scan is never healthy meanwhile and names the pods (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime });
    const { node } = story;
    await story.apply(podObjects([...RUNNING, ...DELETED], node.name));
    await story.waitForPods(RUNNING.length + DELETED.length, isReady);
    for (const pod of DELETED) await orderAtGate(node.lab, "DEL", pod, refusal("no route to the network controller"));

    await story.kubectl("delete", "pod", "--wait=false", ...DELETED);
    await stopFails(node, DELETED);
    const stuck = await scanOn(node);
    expect(stuck.verdict).not.toBe("healthy");
    expect(namedIn(stuck, DELETED)).toEqual(DELETED);
    expect(stuck.kept.filter(({ pod }) => DELETED.includes(pod?.name ?? ""))).toEqual([]);

    for (const pod of DELETED) await liftOrder(node.lab, "DEL", pod);
    await story.waitForPods(RUNNING.length, isReady);
    await healthyScan(() => scanOn(node));
  },
  HANG_GUARD_MS,
);
