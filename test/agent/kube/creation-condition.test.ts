import { describe, expect, test } from "vitest";
import { creationConditionOf } from "../../../src/agent/kube/creation-condition.ts";
import type { NodeReport } from "../../../src/report/node-report.ts";
import { freshState, scanOf } from "../metrics/agent-state.ts";
import { type ShownAgent, shownAgent } from "./shown-agent.ts";

type Creation = NonNullable<NodeReport["podCreation"]>;

const web = { namespace: "shop", name: "web-0" };
const at = "2026-03-01T11:58:00.000Z";
const ABLE: Creation = { able: "yes", lastSuccess: { at, pod: web }, blockedPods: [] };
const UNABLE: Creation = {
  able: "no",
  lastFailure: { at, code: "name-reserved", pod: web, message: "name is reserved" },
  blockedPods: [web, { namespace: "shop", name: "web-1" }],
};

const UNKNOWN: Creation = { able: "unknown", blockedPods: [] };

function conditionWith(podCreation: Creation | undefined, nowMs = 0) {
  const report = podCreation === undefined ? {} : { podCreation };
  return creationConditionOf(freshState({ scan: scanOf({ report, endedAtMs: 0 }) }), nowMs);
}

describe("the condition SandboxCreation", () => {
  test.each([
    ["True while sandboxes are created", ABLE, "True", "SandboxesCreated", "This node creates pod sandboxes"],
    [
      "False with cause and blocked pods while none can be created",
      UNABLE,
      "False",
      "SandboxCreationFails",
      "This node cannot create pods; cause: name-reserved; blocked: shop/web-0, shop/web-1",
    ],
    ["Unknown while nothing shows it", UNKNOWN, "Unknown", "NoSandboxCreatedYet", expect.any(String)],
    ["Unknown if the runtime was not read", undefined, "Unknown", "NodeUnreadable", expect.any(String)],
  ])("is %s", (_title, creation, status, reason, message) => {
    expect(conditionWith(creation)).toMatchObject({ status, reason, message });
  });

  test("is Unknown when no scan ends any more, and missing before the first one", () => {
    expect(conditionWith(ABLE, 11 * 60_000)).toMatchObject({ status: "Unknown", reason: "ScanOverdue" });
    expect(creationConditionOf(freshState(), 0)).toBeUndefined();
  });

  test("is written with the last success and failure, which alone cause no write", async () => {
    const agent = shownAgent();
    const published = agent.show();
    agent.scanned([], { podCreation: ABLE });
    await agent.time.pass(0);
    expect(creationOn(agent)).toMatchObject({
      status: "True",
      message: "This node creates pod sandboxes; last success 2026-03-01T11:58:00Z (shop/web-0)",
    });
    agent.writes();

    agent.scanned([], { podCreation: { ...ABLE, lastSuccess: { at: "2026-03-01T12:00:00.000Z", pod: web } } });
    await agent.time.pass(60_000);
    expect(agent.writes()).toEqual([]);

    agent.scanned([], { podCreation: UNABLE });
    await agent.time.pass(0);
    expect(agent.writes()).toEqual(["PATCH /api/v1/nodes/n1/status"]);
    expect(creationOn(agent)).toMatchObject({
      status: "False",
      message: expect.stringMatching(/; last failure 2026-03-01T11:58:00Z \(shop\/web-0\): name is reserved$/),
    });
    await published.close();
  });
});

function creationOn({ cluster }: ShownAgent): Record<string, string> | undefined {
  const status = cluster.store.get("/api/v1/nodes/n1")?.["status"] as { conditions: Record<string, string>[] };
  return status.conditions.find(({ type }) => type === "SandboxCreation");
}
