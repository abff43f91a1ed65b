import { describe, expect, onTestFinished, test } from "vitest";
import { clusterSide } from "../../src/agent/cluster-side.ts";
import { openStore } from "../../src/agent/state/store.ts";
import { policyFrom } from "../../src/cli/settings/policy.ts";
import type { Kubernetes } from "../../src/node/types/snapshot.ts";
import { type MirrorRig, mirrorRig } from "../kube/mirror-rig.ts";
import { ENDING, QUARANTINE } from "./limits/actions.ts";
import { freshState } from "./metrics/agent-state.ts";

const NO_HOLDS = { paused: false, node: false, namespaces: [] };
const ANSWERING: Kubernetes = { source: "api", nodeName: "n1", pods: [], holds: NO_HOLDS };
const SILENT: Kubernetes = { source: "kubelet", pods: [], error: "the API server did not answer in time" };

async function openedSide(): Promise<{ readonly rig: MirrorRig; readonly side: ReturnType<typeof clusterSide> }> {
  const rig = await mirrorRig();
  const side = clusterSide({
    store: openStore(freshState()),
    places: { root: "/", kubeconfig: rig.kubeconfig, env: {} },
    node: "n1",
    timeoutMs: 20_000,
    policy: () => policyFrom({}),
    warn: () => undefined,
    onChange: () => undefined,
    answer: () => Promise.reject(new Error("no request expected")),
  });
  onTestFinished(() => side.close());
  await side.mirror();
  return { rig, side };
}

function leaseRequests({ api }: MirrorRig): readonly string[] {
  return api.requests.filter((request) => request.includes("/leases"));
}

describe("fleet decision", () => {
  test("is requested when the API server answered the scan", async () => {
    const { rig, side } = await openedSide();
    side.saw({ kubernetes: ANSWERING });

    const answer = await side.gate([ENDING]);
    if (answer.kind === "go") await answer.release();

    expect(leaseRequests(rig)).not.toEqual([]);
  });

  test("is not waited for when the API server did not answer: the node heals", async () => {
    const { rig, side } = await openedSide();
    rig.setMood("hang");
    side.saw({ kubernetes: SILENT });

    expect(await side.gate([ENDING])).toMatchObject({ kind: "go" });
    expect(leaseRequests(rig)).toEqual([]);
  });

  test("lets nothing disruptive run while the node is in maintenance, and takes no slot for it", async () => {
    const { rig, side } = await openedSide();
    const maintenance = "the condition DrainInProgress";
    side.saw({ kubernetes: { ...ANSWERING, holds: { ...NO_HOLDS, maintenance } } });

    const answer = await side.gate([ENDING, QUARANTINE]);

    expect(answer).toMatchObject({ kind: "wait", reason: "maintenance", meanwhile: [QUARANTINE] });
    expect("message" in answer && answer.message).toContain("DrainInProgress");
    expect(leaseRequests(rig).filter((request) => request.includes("unghost-heal"))).toEqual([]);
    side.saw({ kubernetes: ANSWERING });
    expect(await side.gate([QUARANTINE])).toMatchObject({ kind: "go" });
  });
});
