import { describe, expect } from "vitest";
import { lostStatus } from "../../lab/faults/lost-status.ts";
import { strayContainer } from "../../lab/faults/stray-container.ts";
import type { LabNode } from "../../lab/node.ts";
import { runPod } from "../../lab/pods.ts";
import { ContainerState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectAlive, heal, quarantine, unghostIn } from "./healed-node.ts";
import { named, readyPods, scan } from "./scanned-node.ts";

describe.skipIf(NO_REAL_NODE !== undefined)("what a crash leaves of containers", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("a container without its sandbox is found, offline too, and alone removed", async (runtime) => {
    const node = await start({ runtime });
    const stray = await strayContainer(node);
    const id = `kubelet-blocked-by-orphan-container/${stray.containerId}`;
    const ready = await readyPods(node);

    expect(named(await scan(node))).toEqual([id]);
    await node.stopRuntime();
    expect(await offline(node)).toEqual([id]);
    await node.startRuntime();

    const { report } = await heal(node);
    expect(report.actions).toMatchObject([{ finding: id, action: "remove-container", outcome: "healed" }]);
    expect(await listed(node)).not.toContain(stray.containerId);
    expect([...quarantine(node).keys()].some((path) => path.includes("main"))).toBe(true);
    await expectAlive(node, { ready, kept: [] });
    expect(named(await scan(node))).toEqual([]);
  });

  eachRuntime("boot removes a container without its sandbox before a kubelet starts", async (runtime) => {
    const node = await start({ runtime });
    const stray = await strayContainer(node);
    await node.powerCut();
    await node.powerOn({ runtime: false });

    const { stdout } = await unghostIn(node, ["boot", "--no-kube"]);

    expect(stdout).toContain("1 healed");
    await node.startRuntime();
    expect(await listed(node)).not.toContain(stray.containerId);
  });

  eachRuntime("an empty status file is named before the runtime starts", async (runtime) => {
    const node = await start({ runtime });
    const pod = await runPod(node, { name: "torn", hostNetwork: true, containers: [{ name: "main" }] });
    const { path } = await lostStatus(node, pod);
    await node.powerOn({ runtime: false });

    expect(await offline(node)).toContain(`container-status-lost/${path}`);
    await node.startRuntime();
    const [container] = await node.cri.listContainers(undefined, CALL);
    expect(container?.state).toBe(ContainerState.CONTAINER_UNKNOWN);
    expect(named(await scan(node))).toEqual([`dead-after-crash/${pod.sandboxId}`]);
  });
});

async function offline(node: LabNode): Promise<readonly string[]> {
  const { stdout } = await unghostIn(node, ["scan", "--offline", "-o", "json"]);
  return named(JSON.parse(stdout));
}

async function listed(node: LabNode): Promise<readonly string[]> {
  return (await node.cri.listContainers(undefined, CALL)).map(({ id }) => id);
}
