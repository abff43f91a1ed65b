import { describe, expect, test } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { type LabPod, runPod, runPods } from "../../lab/pods.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectGone, heal } from "./healed-node.ts";
import { AT_ONCE } from "./scanned-node.ts";
import { reportOf, UNGHOST } from "./unghost.ts";

const APP = [{ name: "app" }, { name: "sidecar" }];
const SLOW_RUNC = `#!/bin/sh
case " $* " in *" kill "* | *" delete "*) sleep 1 ;; esac
exec runc "$@"
`;
const USE_SLOW_RUNC = `[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "/opt/runc"
`;

describe.skipIf(NO_REAL_NODE !== undefined)("shims that do not answer", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("are named, and hide neither each other nor a ghost", async (runtime) => {
    const node = await start({ runtime });
    const ghost = await runPod(node, { name: "ghost" });
    await node.powerCut();
    await node.powerOn();
    const hung = [
      await runPod(node, { name: "hung-0", containers: APP }),
      await runPod(node, { name: "hung-1", containers: APP }),
    ];
    for (const pod of hung) await signalShim(node, pod, "STOP");

    const stopped = hung.map((pod) => `shim-hangs/pid-${shimOf(node, pod)}`);
    const withGhost = await scanAsUsersDo(node);
    expect(withGhost.findings.toSorted()).toEqual([`dead-after-crash/${ghost.sandboxId}`, ...stopped].toSorted());
    await heal(node);
    await expectGone(node, ghost);

    const { verdict, findings, problems } = await scanAsUsersDo(node);
    expect([verdict, findings.toSorted()]).toEqual(["ghosts", stopped.toSorted()]);
    expect(problems.toSorted()).toEqual(
      hung.map(({ ref }) => expect.stringContaining(`shim of ${ref.namespace}/${ref.name}: it did not answer`)),
    );

    for (const pod of hung) await signalShim(node, pod, "CONT");
    expect(await scanAsUsersDo(node)).toEqual({ verdict: "healthy", findings: [], problems: [] });
  });

  // A shim answers no question about a task while runc works on it, and containerd's list asks one shim after the other.
  test("for a second, because runc is slow: every scan is healthy while pods are deleted", async () => {
    const node = await start({ runtimeConfig: USE_SLOW_RUNC });
    await node.writeFile("/opt/runc", SLOW_RUNC, 0o755);
    const pods = await runPods(node, 6, { containers: APP });

    let areDeleted = false;
    const deletion = Promise.all(pods.map((pod) => deletePod(node, pod))).finally(() => {
      areDeleted = true;
    });
    const answers = new Set<string>();
    while (!areDeleted) {
      const { verdict, problems } = await scanAsUsersDo(node, ["--no-kube"]);
      answers.add([verdict, ...problems].join(" "));
    }
    await deletion;
    expect([...answers]).toEqual(["healthy"]);
  });
});

/** With the default timeout. */
async function scanAsUsersDo(node: LabNode, flags: readonly string[] = AT_ONCE) {
  const { verdict, findings, problems } = reportOf(await node.exec([UNGHOST, "scan", "-o", "json", ...flags]));
  return { verdict, findings: findings.map(({ id }) => id), problems: problems.map(({ problem }) => problem) };
}

async function deletePod({ cri }: LabNode, { sandboxId, containerIds }: LabPod): Promise<void> {
  for (const id of containerIds) await cri.stopContainer(id, 0, CALL);
  await cri.stopPodSandbox(sandboxId, CALL);
  await cri.removePodSandbox(sandboxId, CALL);
}

async function signalShim(node: LabNode, pod: LabPod, signal: "STOP" | "CONT"): Promise<void> {
  await node.check(["kill", `-${signal}`, String(shimOf(node, pod))]);
}

function shimOf(node: LabNode, { sandboxId }: LabPod): number {
  const shim = processesOf(node).find(({ command }) => command.includes("-id") && command.includes(sandboxId));
  if (shim === undefined) throw new Error(`${sandboxId} has no shim`);
  return shim.pid;
}
