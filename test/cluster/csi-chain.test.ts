import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import { scratchObjects } from "../../lab/cluster/csi-storage.ts";
import { isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import { reportOf } from "../e2e/unghost.ts";
import {
  podNamed,
  replacedAmong,
  restartsOf,
  socketServed,
  startDriver,
  startedAmong,
  tearCacheOf,
} from "./csi-driver.ts";
import { cluster, HANG_GUARD_MS, scanOn, unghostOn, WAIT_MS } from "./lab-cluster.ts";
import { agentLog } from "./pod-ghost.ts";

test(
  "after a power cut with a torn CNI cache of a CSI node plugin, the agent restores the driver, its sidecar and the volume",
  async () => {
    const story = await cluster();
    const { node } = story;
    const before = await startDriver(story);

    await node.powerCut();
    tearCacheOf(node, "zz-node-plugin");
    await node.boot();
    const isOld = startedAmong(before);
    const restarts = restartsOf(before.find(({ metadata }) => metadata.name.startsWith("csi-sidecar-")));
    await until("the sidecar crashes after the boot", WAIT_MS, async () =>
      restartsOf(await podNamed(story, "csi-sidecar")) > restarts + 1 ? true : undefined,
    );
    const report = await scanOn(node);
    expect(report.findings.map(({ class: id }) => id)).toContain("libcni-result-cache-corrupt");
    expect(report.findings.flatMap(({ blocks }) => blocks)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^pod default\/csi-sidecar-\w+: crash-loops without the driver's socket$/),
      ]),
    );

    const agent = await agentOn(node);
    await agent.start();
    await socketServed(node);
    const after = await story.waitForPods(3, (pod) => isReady(pod) && !isOld(pod));

    expect(replacedAmong(before, after)).toEqual(["csi-sidecar"]);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);

test(
  "agent at power-on while the API still shows the sidecar as running: everything is restored without help",
  async () => {
    const story = await cluster();
    const { node } = story;
    const before = await startDriver(story);
    const agent = await agentOn(node);
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");

    await node.powerCut();
    tearCacheOf(node, "zz-node-plugin");
    await node.boot(() => agent.start());
    await socketServed(node);
    const isOld = startedAmong(before);
    const after = await story.waitForPods(3, (pod) => isReady(pod) && !isOld(pod));

    expect(replacedAmong(before, after).filter((name) => name !== "csi-sidecar")).toEqual([]);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);

interface MountEvents {
  readonly items: readonly { readonly involvedObject: { readonly name: string }; readonly count?: number }[];
}

test(
  "three ghosts at once: the agent restarts what crash-looped for lack of the driver, as a dry run announces it, and what waits with a volume of its own",
  async () => {
    const sidecars = names("csi-sidecar", 3);
    const story = await cluster();
    const { node } = story;
    await startDriver(story, sidecars);
    await story.apply(podObjects(["one-0", "two-0"], node.name));
    const before = await story.waitForPods(4 + sidecars.length, isReady);

    await node.powerCut();
    for (const prefix of ["zz-node-plugin", "one", "two"]) tearCacheOf(node, prefix);
    await node.boot();
    for (const sidecar of sidecars) {
      const restarts = restartsOf(before.find(({ metadata }) => metadata.name.startsWith(`${sidecar}-`)));
      await until("the sidecar crashes after the boot", WAIT_MS, async () =>
        restartsOf(await podNamed(story, sidecar)) > restarts + 1 ? true : undefined,
      );
    }
    // Its back-off grows with every mount that fails.
    await story.apply(scratchObjects(node.name));
    const failed = await until("mounts of a new pod fail", WAIT_MS, async () => {
      const scratch = await podNamed(story, "scratch");
      const events = await story.kubectl("get", "events", "--field-selector=reason=FailedMount", "-o=json");
      const { items } = JSON.parse(events) as MountEvents;
      const count = items.find(({ involvedObject }) => involvedObject.name === scratch?.metadata.name)?.count ?? 0;
      return count > 5 ? scratch : undefined;
    });
    const planned = reportOf(await unghostOn(node, "heal", "--dry-run", "-o", "json"));
    const restarts = (planned.actions ?? []).flatMap((action) => action.restarts ?? []);
    expect(restarts.map(({ name }) => name.replace(/-\w+$/, "")).toSorted()).toEqual([...sidecars, "scratch"]);

    const agent = await agentOn(node);
    await agent.start();
    await socketServed(node);
    const isOld = startedAmong(before);
    const after = await story.waitForPods(5 + sidecars.length, (pod) => isReady(pod) && !isOld(pod));

    expect(after.find(({ metadata }) => metadata.name.startsWith("scratch-"))?.metadata.uid).not.toBe(
      failed.metadata.uid,
    );
    expect(
      replacedAmong(before, after)
        .filter((name) => name.startsWith("csi-sidecar"))
        .toSorted(),
      agentLog(node),
    ).toEqual(sidecars);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);
