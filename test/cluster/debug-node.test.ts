import { globSync, readFileSync, truncateSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type Cluster, startCluster } from "../../lab/cluster/cluster.ts";
import { isReady, podObjects } from "../../lab/cluster/objects.ts";
import { importUnghostImage } from "../../lab/cluster/unghost-image.ts";
import { until } from "../../lab/poll.ts";
import manifest from "../../package.json" with { type: "json" };
import type { NodeReport } from "../../src/report/node-report.ts";
import { type Ended, jsonIn } from "./agent-pod.ts";
import { HANG_GUARD_MS, stopFails, WAIT_MS } from "./lab-cluster.ts";

const VALUES = parse(readFileSync("deploy/helm/unghost/values.yaml", "utf8")) as { image: { repository: string } };
const IMAGE = `${VALUES.image.repository}:${manifest.version}`;
const GHOST = "libcni-result-cache-corrupt";

let story: Cluster;
beforeAll(async () => {
  story = await startCluster({ runtime: "1.6" });
  await importUnghostImage(story.node);
}, HANG_GUARD_MS);
afterAll(() => story?.destroy());

/** `kubectl debug node/NAME --profile=sysadmin --image=… -- unghost …`, to its end. */
async function debugNode(args: readonly string[], namespace = "default", profile = "sysadmin"): Promise<Ended> {
  const debug = ["debug", `node/${story.node.name}`, `--profile=${profile}`, `--namespace=${namespace}`];
  await story.kubectl(...debug, "--image-pull-policy=Never", `--image=${IMAGE}`, "--", "unghost", ...args);
  const { pod, code } = await until("the debug pod has ended", WAIT_MS, async () => {
    for (const { metadata, status } of await story.pods(namespace)) {
      const exitCode = status.containerStatuses?.[0]?.state?.terminated?.exitCode;
      if (metadata.name.startsWith("node-debugger-") && exitCode !== undefined)
        return { pod: metadata.name, code: exitCode };
    }
    return undefined;
  });
  const output = await story.kubectl("logs", `--namespace=${namespace}`, pod);
  await story.kubectl("delete", "pod", `--namespace=${namespace}`, pod);
  return { code, output };
}

/** A ghost of containerd 1.6: it cannot stop a sandbox with a torn CNI result. */
async function makeGhost(pod: string): Promise<void> {
  const { node } = story;
  await story.apply(podObjects([pod], node.name));
  await story.waitForPods(1, isReady);
  for (const cache of globSync(node.lab.path("/var/lib/cni/results/cbr0-*"))) truncateSync(cache);
  await story.kubectl("delete", "pod", pod, "--wait=false");
  await stopFails(node, [pod]);
}

const classesIn = ({ findings }: NodeReport) => findings.map((finding) => finding.class);

describe("kubectl debug node, without an agent", { timeout: HANG_GUARD_MS }, () => {
  test("scan finds a ghost, heal --dry-run changes nothing, heal --yes heals it", async () => {
    await makeGhost("web-0");

    const scanned = await debugNode(["scan", "-o", "json"]);
    const planned = await debugNode(["heal", "--dry-run"]);
    const still = await debugNode(["scan", "-o", "json"]);
    const healed = await debugNode(["heal", "--yes", "-o", "json"]);
    const after = await debugNode(["scan", "-o", "json"]);

    expect(jsonIn(scanned)).toMatchObject({ node: story.node.name, problems: [], kubernetes: { source: "api" } });
    expect([scanned.code, classesIn(jsonIn(scanned))]).toEqual([1, [GHOST]]);
    expect([planned.code, planned.output]).toEqual([1, expect.stringContaining(GHOST)]);
    expect(classesIn(jsonIn(still))).toEqual([GHOST]);
    expect([healed.code, jsonIn(healed).actions]).toEqual([0, [expect.objectContaining({ outcome: "healed" })]]);
    expect([after.code, jsonIn(after).verdict]).toEqual([0, "healthy"]);
  });

  test("without --profile=sysadmin nothing is proven dead, and scan and doctor report what is missing", async () => {
    const scanned = await debugNode(["scan", "-o", "json"], "default", "general");
    const examined = await debugNode(["doctor"], "default", "general");

    expect(jsonIn(scanned).problems).toContainEqual(
      expect.objectContaining({ source: "processes", next: expect.stringContaining("CAP_SYS_PTRACE") }),
    );
    expect(jsonIn(scanned).verdict).not.toBe("healthy");
    expect([examined.code, examined.output]).toEqual([1, expect.stringContaining("--profile=sysadmin")]);
  });

  test("with Talos' paths, in kube-system", async () => {
    const kubernetes = "/etc/kubernetes";
    await story.node.lab.check(["mv", `${kubernetes}/kubelet.conf`, `${kubernetes}/kubeconfig-kubelet`]);
    await makeGhost("web-1");

    const scanned = await debugNode(["scan", "-o", "json"], "kube-system");
    const planned = await debugNode(["heal", "--dry-run"], "kube-system");
    const healed = await debugNode(["heal", "--yes", "-o", "json"], "kube-system");

    expect(jsonIn(scanned)).toMatchObject({ problems: [], kubernetes: { source: "api" } });
    expect([scanned.code, classesIn(jsonIn(scanned)), planned.code]).toEqual([1, [GHOST], 1]);
    expect([healed.code, jsonIn(healed).actions]).toEqual([0, [expect.objectContaining({ outcome: "healed" })]]);
  });
});
