import { describe, expect, test } from "vitest";
import { hasCgroup2 } from "../../lab/cgroup.ts";
import { abandonedStaticPod, MANIFESTS } from "../../lab/faults/abandoned-static-pod.ts";
import { busyCgroup } from "../../lab/faults/busy-cgroup.ts";
import { deniedSignals } from "../../lab/faults/denied-signals.ts";
import { inotifyExhausted } from "../../lab/faults/inotify-exhausted.ts";
import { leftoverVolume } from "../../lab/faults/leftover-volumes.ts";
import { memoryCgroupsExhausted } from "../../lab/faults/memory-cgroups.ts";
import { finishedPod, podRef, runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { apiHas, apiKnows, STUB_KUBECONFIG, startStubApi } from "../../lab/stub-api.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { unghostIn } from "./healed-node.ts";
import { AT_ONCE, named, runKubelet, scan } from "./scanned-node.ts";

const UNCHANGED = ["--kubeconfig", STUB_KUBECONFIG, "--volume-attachment-age", "0s"] as const;

describe.skipIf(NO_REAL_NODE !== undefined)("limits and leftovers of a node", { timeout: HANG_GUARD_MS }, () => {
  test("used-up inotify instances are found, before the ghosts that they leave", async () => {
    const node = await start();
    const ghost = await runPod(node, { name: "ghost", hostNetwork: true, containers: [{ name: "main" }] });
    await node.powerCut();
    await node.powerOn();
    const before = await scan(node, AT_ONCE);
    await inotifyExhausted(node);

    const report = await scan(node, AT_ONCE);
    const { stdout } = await unghostIn(node, ["scan", ...AT_ONCE]);

    const id = "inotify-instances-exhausted//proc/sys/fs/inotify/max_user_instances";
    expect(named(before)).toEqual([`dead-after-crash/${ghost.sandboxId}`]);
    expect(named(report)).toEqual([...named(before), id].toSorted());
    expect(report.findings.find((finding) => finding.id === id)?.evidence[0]?.fact).toMatch(/limit is 8; most: tail 8/);
    expect(stdout.indexOf("inotify-instances")).toBeLessThan(stdout.indexOf("dead-after-crash"));
  });

  test("processes in the cgroup of a pod that is gone, and used-up memory cgroups", async () => {
    const node = await start();
    await startStubApi(node);
    const running = await runPod(node, { name: "running", containers: [{ name: "main" }] });
    await apiKnows(node, running.ref);
    const gone = await busyCgroup(node, podRef({ name: "gone" }));
    await busyCgroup(node, running.ref);

    const report = await scan(node, UNCHANGED);

    expect(named(report)).toEqual([`pod-cgroup-busy/${gone.path}`]);
    expect(report.findings[0]?.evidence[0]?.fact).toBe(`${gone.path}: processes ${gone.pid}`);
    await node.kill(gone.pid);
    await memoryCgroupsExhausted(node);
    await until("the process has left its cgroup", 30_000, async () => {
      const found = named(await scan(node, UNCHANGED));
      return found.join() === "memory-cgroups-exhausted//proc/cgroups" ? true : undefined;
    });
  });

  test.skipIf(!hasCgroup2())(
    "signals of runc that AppArmor refuses, once a removal fails because of them",
    async () => {
      const node = await start({ runtime: "2.3", cgroup: "v2" });
      const pod = await runPod(node, { name: "web", containers: [{ name: "main" }] });
      await deniedSignals(node);
      expect(named(await scan(node, AT_ONCE))).toEqual([]);

      await expect(node.cri.stopPodSandbox(pod.sandboxId, CALL)).rejects.toThrow(
        "unable to signal init: permission denied",
      );
      const report = await scan(node, AT_ONCE);

      expect(named(report)).toEqual(["runc-signal-denied//etc/apparmor.d"]);
      expect(report.findings[0]).toMatchObject({ severity: "critical", evidence: [{ source: "kernel log" }] });
    },
  );

  test("volumes of a deleted pod that are still mounted, and a directory of a pod that is gone", async () => {
    const node = await start();
    await startStubApi(node);
    const terminating = await finishedPod(node, { name: "terminating" });
    const metadata = { deletionTimestamp: new Date(Date.now() - 60_000).toISOString() };
    await apiKnows(node, terminating.ref, { metadata });
    const busy = await leftoverVolume(node, terminating.ref, { isMounted: true });
    const orphan = await leftoverVolume(node, podRef({ name: "gone" }), { isMounted: false });
    const running = await runPod(node, { name: "running", containers: [{ name: "main" }] });
    await apiKnows(node, running.ref);
    await leftoverVolume(node, running.ref, { isMounted: true });

    expect(named(await scan(node, UNCHANGED.slice(0, 2)))).toEqual([]);
    const mounted = `volume-teardown-busy/${busy.path}`;
    // Without a kubelet nothing would have removed the directory.
    expect(named(await scan(node, UNCHANGED))).toEqual([mounted]);
    await runKubelet(node);
    const report = await scan(node, UNCHANGED);

    expect(named(report)).toEqual([`orphaned-volumes-directory/${orphan.path}`, mounted].toSorted());
    const [finding] = report.findings.filter(({ id }) => id === mounted);
    expect(finding).toMatchObject({ blocks: ["the deletion of pod default/terminating"], severity: "critical" });
    expect(finding?.evidence.map(({ fact }) => fact).join("\n")).toContain(busy.mount);
    await node.check(["umount", busy.mount]);
    expect(named(await scan(node, UNCHANGED))).toEqual([`orphaned-volumes-directory/${orphan.path}`]);
  });

  test("a static pod that kubelet does not start is found, and one that runs is not", async () => {
    const node = await start();
    const { path } = await abandonedStaticPod(node);
    await abandonedStaticPod(node, "web");
    const annotations = { "kubernetes.io/config.source": "file" };
    await runPod(node, { name: "web-node", namespace: "kube-system", annotations });

    expect(named(await scan(node, AT_ONCE))).toEqual([]);
    await runKubelet(node, [`--pod-manifest-path=${MANIFESTS}`]);
    const report = await scan(node, AT_ONCE);

    expect(named(report)).toEqual([`static-pod-not-started/${path}`]);
    expect(report.findings[0]).toMatchObject({ severity: "critical", blocks: ["static pod kube-system/etcd"] });
  });

  test("a volume that another node has is found by the one event that reports it", async () => {
    const node = await start();
    await startStubApi(node);
    const pod = podRef({ name: "db" });
    await apiKnows(node, pod, {
      spec: { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] },
      status: { phase: "Pending" },
    });
    await apiHas(node, "/api/v1/namespaces/default/events/multi-attach", {
      metadata: { name: "multi-attach", namespace: "default" },
      involvedObject: { kind: "Pod", namespace: "default", name: "db", uid: pod.uid },
      type: "Warning",
      reason: "FailedAttachVolume",
      message:
        'Multi-Attach error for volume "pvc-lab" Volume is already exclusively attached to one node and can\'t be attached to another',
      count: 1,
      lastTimestamp: new Date(Date.now() - 20 * 60_000).toISOString(),
    });

    const report = await scan(node, UNCHANGED.slice(0, 2));

    expect(named(report)).toEqual(["volume-attachment-stuck/pvc-lab"]);
    expect(report.findings[0]).toMatchObject({ blocks: ["pod default/db"], severity: "critical" });
    expect(named(await scan(node, [...UNCHANGED.slice(0, 3), "1h"]))).toEqual([]);
  });
});
