import { describe, expect } from "vitest";
import { duplicateRecord } from "../../lab/faults/duplicate-record.ts";
import { emptyLease, leakedLease } from "../../lab/faults/host-local.ts";
import { leakedContainerdLease } from "../../lab/faults/leaked-containerd-lease.ts";
import { leakedNetns, leftoverNetnsFile } from "../../lab/faults/leaked-netns.ts";
import { leakedShim } from "../../lab/faults/leaked-shim.ts";
import { orphanedCache } from "../../lab/faults/orphaned-cache.ts";
import { runPod } from "../../lab/pods.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, company, expectUntouched, kubeletKnows, named, scan, WITH_KUBELET } from "./scanned-node.ts";

describe.skipIf(NO_REAL_NODE !== undefined)("scan of a node with leaks", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("finds nothing on a healthy node", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);

    const report = await scan(node);

    expect([report.verdict, named(report)]).toEqual(["healthy", []]);
    expectUntouched(report, beside);
  });

  eachRuntime("reports leaked addresses, and one without an owner", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);

    const leaked = await leakedLease(node);
    const empty = await emptyLease(node);

    const report = await scan(node);
    expect(named(report)).toEqual(
      [`hostlocal-ip-leak-after-reboot/${leaked.path}`, `hostlocal-empty-ip-file/${empty.path}`].toSorted(),
    );
    expectUntouched(report, beside);
  });

  eachRuntime("reports cache files of sandboxes that are gone, each once", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);

    const files = [
      await orphanedCache(node, "results"),
      await orphanedCache(node, "multus"),
      await orphanedCache(node, "flannel"),
    ];

    const report = await scan(node);
    expect(named(report)).toEqual(files.map(({ path }) => `cni-cache-files-orphaned/${path}`).toSorted());
    expectUntouched(report, beside);
  });

  eachRuntime("reports network namespaces without an owner, mounted or not", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);

    const mounted = await leakedNetns(node);
    const plain = await leftoverNetnsFile(node);

    const report = await scan(node, AT_ONCE);
    expect(named(report)).toEqual([mounted, plain].map(({ path }) => `netns-and-veth-leak/${path}`).toSorted());
    expectUntouched(report, beside);
    const young = await scan(node);
    expect(named(young)).toEqual([]);
  });

  eachRuntime("reports a shim without a record, and nothing else that it leaves", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);

    const leak = await leakedShim(node);

    const report = await scan(node);
    expect(named(report)).toEqual([`shim-leak/pid-${leak.pid}`]);
    expect(report.findings[0]?.subject).toMatchObject({ type: "process", pid: leak.pid, sandboxId: leak.sandboxId });
    expectUntouched(report, beside);
  });

  eachRuntime("reports a lease of a sandbox that is gone", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);

    const leak = await leakedContainerdLease(node);

    const report = await scan(node, AT_ONCE);
    expect(named(report)).toEqual([`snapshot-lease-leak/${leak.sandboxId}`]);
    expectUntouched(report, beside);
  });

  eachRuntime("reports the record that duplicates a name, not the pod that owns it", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const pod = await runPod(node, { name: "web" });

    const duplicate = await duplicateRecord(node, pod);

    const report = await scan(node);
    expect(named(report)).toEqual([`record-leak-after-late-failure/${duplicate.sandboxId}`]);
    expectUntouched(report, { ...beside, ready: [...beside.ready, pod] });
  });

  eachRuntime("reports a running container without a pod, when kubelet can be read", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    kubeletKnows(node, ...beside.ready, ...beside.kept);

    const pod = await runPod(node, { name: "forgotten", containers: [{ name: "main" }] });

    const report = await scan(node, WITH_KUBELET);
    expect(named(report)).toEqual([`leftover-container/${pod.containerIds[0]}`]);
    expect(report.kubernetes.source).toBe("kubelet");
    expectUntouched(report, beside);
    expect(named(await scan(node))).toEqual([]);
  });
});
