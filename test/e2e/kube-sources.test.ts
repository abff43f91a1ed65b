import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { leakedLease } from "../../lab/faults/host-local.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { finishedPod, type LabPod, type PodSpec, podRef, runPod } from "../../lab/pods.ts";
import {
  apiKnows,
  askedOfApi,
  STUB_KUBECONFIG,
  type StubIdentity,
  setApiMood,
  startStubApi,
  stopStubApi,
} from "../../lab/stub-api.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { crowd } from "./crowded-cluster.ts";
import { cniFiles, expectAlive, expectGone, heal, listedIds, unghostIn } from "./healed-node.ts";
import { kubeletKnows } from "./scanned-node.ts";
import { reportOf, UNGHOST } from "./unghost.ts";

const containers = [{ name: "main" }];
const WITH_API = ["--kubeconfig", STUB_KUBECONFIG, "--min-age", "0s"] as const;

/** Twenty NotReady sandboxes in five different situations in Kubernetes. */
interface Twenty {
  readonly finished: readonly LabPod[];
  readonly static: readonly LabPod[];
  readonly recreated: readonly LabPod[];
  readonly gone: readonly LabPod[];
  readonly blocked: readonly LabPod[];
}

describe.skipIf(NO_REAL_NODE !== undefined)("dead sandboxes and the Kubernetes API", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("heals exactly the twelve of twenty that are proven stuck", async (runtime) => {
    const node = await start({ runtime });
    const twenty = await twentyDead(node);
    expect(await listedIds(node)).toHaveLength(20);

    const { code, report } = await heal(node, WITH_API);

    const stuck = [...twenty.recreated, ...twenty.gone, ...twenty.blocked];
    expect([code, report.kubernetes, report.remaining]).toEqual([0, { source: "api" }, []]);
    expect(report.actions?.map(({ finding, outcome }) => [finding.split("/")[1], outcome]).toSorted()).toEqual(
      stuck.map(({ sandboxId }) => [sandboxId, "healed"]).toSorted(),
    );
    await expectAlive(node, { ready: [], kept: [...twenty.finished, ...twenty.static] });
    const left = cniFiles(node).join("\n");
    for (const { sandboxId } of twenty.blocked) expect(left).not.toContain(sandboxId);
    const second = await heal(node, WITH_API);
    expect([second.code, second.report.actions]).toEqual([0, []]);
    await expectGone(node, ...twenty.recreated, ...twenty.gone);
  });

  test("an unavailable API limits the actions, and never costs a finished or static pod", async () => {
    const node = await start();
    const twenty = await twentyDead(node);
    const kept = { ready: [], kept: [...twenty.finished, ...twenty.static] };
    const restartAs = async (identity: StubIdentity): Promise<void> => {
      await setApiMood(node, "well");
      if (identity === "expired") await stopStubApi(node);
      await startStubApi(node, identity);
    };
    const troubles: readonly (readonly [string, () => Promise<void>, RegExp])[] = [
      ["answers 500", () => setApiMood(node, "500"), /answered 500/],
      ["refuses the token", () => setApiMood(node, "401"), /answered 401/],
      ["hangs", () => setApiMood(node, "hang"), /did not answer in time/],
      ["asks for patience without end", () => setApiMood(node, "429"), /answered 429/],
      ["breaks off", () => setApiMood(node, "cut"), /broke off|cannot be reached/],
      ["is not there", () => stopStubApi(node), /cannot be reached/],
      ["has a certificate of the future, or this clock is behind", () => restartAs("not-yet-valid"), /not yet valid/i],
      ["has a certificate of the past", () => restartAs("expired"), /expired/i],
    ];
    for (const [, begin, error] of troubles) {
      await begin();
      const scanned = reportOf(
        await unghostIn(node, ["scan", "--timeout", "3s", "-o", "json", "--kubeconfig", STUB_KUBECONFIG]),
      );
      expect(scanned.kubernetes).toEqual({ source: "none", error: expect.stringMatching(error) });
      const planned = reportOf(
        await unghostIn(node, ["heal", "--dry-run", "--timeout", "3s", "-o", "json", ...WITH_API]),
      );
      const meant = planned.actions?.map(({ finding }) => finding.split("/")[1]);
      for (const { sandboxId } of kept.kept) expect(meant).not.toContain(sandboxId);
    }
    kubeletKnows(node, ...twenty.finished, ...twenty.blocked);
    const { report } = await heal(node, WITH_API);

    expect(report.kubernetes.source).toBe("kubelet");
    await expectAlive(node, kept);
    const touched = report.actions?.map(({ finding }) => finding.split("/")[1]) ?? [];
    for (const { sandboxId } of kept.kept) expect(touched).not.toContain(sandboxId);
    // Kubelet's directories prove that a pod is gone if it died with the node, but not if it ended orderly.
    const lost = [...twenty.recreated, ...twenty.gone].filter((_, index) => index % 2 === 1);
    expect(touched.toSorted()).toEqual([...lost, ...twenty.blocked].map(({ sandboxId }) => sandboxId).toSorted());
  });

  test("a hanging API does not delay the runtime, and is reported", async () => {
    const node = await start();
    await startStubApi(node);
    await setApiMood(node, "hang");
    const leaked = await leakedLease(node);
    const flags = ["--timeout", "2s", ...WITH_API];

    const scanned = reportOf(await unghostIn(node, ["scan", "-o", "json", ...flags]));
    const planned = await unghostIn(node, ["heal", "--dry-run", ...flags]);
    const healed = await unghostIn(node, ["heal", "--yes", ...flags]);

    expect(scanned.problems.map(({ source }) => source)).toEqual(["kubernetes"]);
    expect(scanned.findings.map(({ subject }) => subject.path)).toEqual([leaked.path]);
    for (const { stdout } of [planned, healed]) expect(stdout).toMatch(/kubernetes: .*did not answer in\s+time/);
    expect(cniFiles(node).join("\n")).not.toContain(leaked.sandboxId);
  });

  test("a scan sends only necessary requests", async () => {
    const node = await start();
    await startStubApi(node);
    const pod = await runPod(node, { name: "busy", containers });
    await apiKnows(node, pod.ref);
    await askedOfApi(node);
    const scan = ["scan", "-o", "json", "--timeout", "30s", ...WITH_API];

    expect(reportOf(await unghostIn(node, scan)).verdict).toBe("healthy");
    expect((await askedOfApi(node)).map(resource).toSorted()).toEqual(["nodes", "pods", "volumeattachments"]);

    await finishedPod(node, { name: "deleted" });
    expect(reportOf(await unghostIn(node, scan)).verdict).toBe("ghosts");
    expect((await askedOfApi(node)).map(resource).toSorted()).toEqual([
      "namespaces",
      "nodes",
      "pods",
      "volumeattachments",
    ]);

    await apiKnows(node, podRef({ name: "waits" }), { status: { phase: "Pending" } });
    expect(reportOf(await unghostIn(node, scan)).verdict).toBe("ghosts");
    expect((await askedOfApi(node)).map(resource).toSorted()).toEqual([
      "events",
      "namespaces",
      "nodes",
      "pods",
      "volumeattachments",
    ]);
  });

  test("a crowded cluster costs no more requests than a small one, and little memory", async () => {
    const node = await start();
    await startStubApi(node);
    await crowd(node);
    await finishedPod(node, { name: "deleted" });
    await askedOfApi(node);
    const command = [UNGHOST, "scan", "-o", "json", "--timeout", "60s", ...WITH_API];

    const inside = join(import.meta.dirname, "../../bench/inside.ts");
    const measured = await node.check([process.execPath, inside, "1", JSON.stringify({ scan: command })]);

    const { scan }: { readonly scan: { readonly peakMb: number } } = JSON.parse(measured);
    expect(scan.peakMb).toBeGreaterThan(10);
    expect(scan.peakMb).toBeLessThan(100);
    // Twice, because of one warm-up run.
    const asked = Map.groupBy((await askedOfApi(node)).map(resource), (one) => one);
    expect([...asked].map(([name, requests]) => [name, requests.length]).toSorted()).toEqual([
      ["events", 2],
      ["namespaces", 2],
      ["nodes", 2],
      ["pods", 2],
      ["volumeattachments", 2],
    ]);
  });
});

/** As kubelet complains of a pod that cannot be made. */
function resource(request: string): string {
  return /\/v1\/([a-z]+)/.exec(request)?.[1] ?? request;
}

/** Some from a power cut and some from an orderly end. */
async function twentyDead(node: LabNode): Promise<Twenty> {
  const finished = await several(5, (index) => finishedPod(node, { name: `finished-${index}` }));
  const uids = ["0", "1", "2"].map((digit) => `5bd1e995a1b2c3d4e5f60718293a4b5${digit}`);
  const statics = await several(3, (index) => {
    const spec = staticPod(`static-${index}`, uids[index] ?? "");
    return index === 0 ? finishedPod(node, spec) : runPod(node, { ...spec, containers });
  });
  const either = (name: string) => (index: number) =>
    index % 2 === 0
      ? finishedPod(node, { name: `${name}-${index}` })
      : runPod(node, { name: `${name}-${index}`, containers });
  const recreated = await several(4, either("again"));
  const gone = await several(4, either("gone"));
  const blocked = await several(4, (index) => runPod(node, { name: `blocked-${index}`, containers }));
  await node.powerCut();
  for (const pod of blocked) await emptyResultCache(node, pod);
  await node.powerOn();
  await startStubApi(node);
  for (const { ref } of finished) await apiKnows(node, ref, { status: { phase: "Succeeded" } });
  for (const { ref } of statics) await apiKnows(node, podRef({ name: `${ref.name}-node` }), mirrorOf(ref.uid));
  for (const { ref } of recreated) await apiKnows(node, podRef({ name: ref.name }));
  for (const { ref } of blocked) await apiKnows(node, ref);
  return { finished, static: statics, recreated, gone, blocked };
}

/** As kubelet annotates it: the uid of its sandbox is the hash of its manifest. */
function staticPod(name: string, hash: string): PodSpec {
  const annotations = { "kubernetes.io/config.source": "file", "kubernetes.io/config.hash": hash };
  return { name, uid: hash, annotations };
}

function mirrorOf(hash: string) {
  const annotations = {
    "kubernetes.io/config.source": "file",
    "kubernetes.io/config.hash": hash,
    "kubernetes.io/config.mirror": hash,
  };
  return { metadata: { annotations } };
}

async function several(count: number, make: (index: number) => Promise<LabPod>): Promise<readonly LabPod[]> {
  const pods: LabPod[] = [];
  for (let index = 0; index < count; index++) pods.push(await make(index));
  return pods;
}
