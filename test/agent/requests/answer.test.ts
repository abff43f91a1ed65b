import { describe, expect, test } from "vitest";
import { answerRequest } from "../../../src/agent/requests/answer.ts";
import { policyFrom } from "../../../src/cli/settings/policy.ts";
import { refuse } from "../../../src/heal/state/outcome.ts";
import type { GhostHealSpec, HealAnswer } from "../../../src/kube/ghost-heal.ts";
import { containerOf, idOf, LOST, recordOf, sandboxOf } from "../../support/snapshot-builder.ts";
import { type ActingAgent, actingAgent, healing } from "../acting-agent.ts";
import { CLASS, GHOST, kinds, WITH_GHOST, withClass } from "../node-with-ghost.ts";

const DRY: GhostHealSpec = { node: "n1", targets: [], namespaces: [], dryRun: true, columns: 80 };

function ask(agent: ActingAgent, parts: Partial<GhostHealSpec> = {}, ownPodUid?: string): Promise<HealAnswer> {
  return answerRequest({ ...DRY, ...parts }, { cycle: agent.cycle, policy: () => agent.policy, ownPodUid });
}

/** As an operator: reads the plan, then asks for exactly that. */
async function healAsShown(agent: ActingAgent, parts: Partial<GhostHealSpec> = {}): Promise<HealAnswer> {
  const { planDigest } = await ask(agent, parts);
  return await ask(agent, { ...parts, dryRun: false, planDigest });
}

/** It only observes: without a request nothing is healed. */
function observingAgent(): ActingAgent {
  const agent = actingAgent();
  agent.node = WITH_GHOST;
  withClass(agent, { mode: "observe" });
  return agent;
}

const TWO = {
  sandboxes: [sandboxOf("a", { createdSecondsAgo: 7200 }), sandboxOf("b", { createdSecondsAgo: 7200 })],
  containers: [containerOf("a", { exit: LOST }), containerOf("b", { exit: LOST })],
  records: [recordOf("a"), recordOf("b")],
};

describe("a dry run", () => {
  test("answers with the plan as heal --dry-run prints it, and its digest; nothing is healed", async () => {
    const agent = observingAgent();

    const answer = await ask(agent);

    expect(answer).toMatchObject({ outcome: "planned", verdict: "ghosts", totals: { planned: 1, healed: 0, left: 1 } });
    expect(answer.plan).toMatch(/^Plan: heal 1 ghost on /);
    expect(answer.plan).toContain(CLASS);
    expect(answer.planDigest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(agent.healed).toEqual([]);
  });

  test("answers for a node without findings that there is nothing to heal", async () => {
    const answer = await ask(actingAgent());

    expect(answer).toMatchObject({ outcome: "planned", verdict: "healthy", totals: { planned: 0 } });
    expect(answer.plan).toMatch(/^Nothing to heal on /);
  });

  test("scans, and shows what it found like any other scan", async () => {
    const agent = observingAgent();

    await ask(agent);

    expect(agent.state().sightings.map(({ finding }) => finding.id)).toEqual([GHOST]);
  });
});

describe("a request to heal", () => {
  test("heals what the agent itself only observes, and answers with what was done", async () => {
    const agent = observingAgent();

    const answer = await healAsShown(agent);

    expect(agent.healed.map(({ actions }) => actions.map(({ finding }) => finding.id))).toEqual([[GHOST]]);
    expect(answer).toMatchObject({
      outcome: "healed",
      verdict: "healthy",
      totals: { planned: 1, healed: 1, left: 0 },
      actions: [{ finding: GHOST, class: CLASS, outcome: "healed" }],
    });
    expect(kinds(agent)).toContain("healed");
    expect(agent.state().sightings).toEqual([]);
  });

  test("waits neither for the age of the finding nor for a maintenance window", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;
    const weekday = (new Date().getUTCDay() + 3) % 7;
    agent.policy = {
      ...agent.policy,
      maintenanceWindows: [{ days: [weekday], fromMinute: 0, toMinute: 1, timeZone: "UTC" }],
    };
    withClass(agent, { minAgeMs: 3_600_000 });
    await agent.round();
    expect(agent.healed).toEqual([]);

    expect(await healAsShown(agent)).toMatchObject({ outcome: "healed" });
  });

  test("is refused when the plan has changed since it was shown", async () => {
    const agent = observingAgent();
    const { planDigest } = await ask(agent);
    agent.node = TWO;

    const answer = await ask(agent, { dryRun: false, planDigest });

    expect(answer).toMatchObject({ outcome: "refused", code: "plan-changed" });
    expect(agent.healed).toEqual([]);
  });

  test("heals the selected targets only, and is about them only", async () => {
    const agent = observingAgent();
    agent.node = TWO;
    agent.heal = (shown, order) => healing(agent, shown, order, "healed", () => WITH_GHOST);

    const answer = await healAsShown(agent, { targets: [idOf("b")] });

    expect(agent.healed.map(({ actions }) => actions.map(({ finding }) => finding.id))).toEqual([
      [`${CLASS}/${idOf("b")}`],
    ]);
    expect(answer).toMatchObject({ outcome: "healed", totals: { planned: 1, healed: 1, left: 0 } });
  });

  test("is refused for a target that the node does not have", async () => {
    const answer = await healAsShown(observingAgent(), { targets: ["shop/none"] });

    expect(answer).toMatchObject({ outcome: "refused", code: "unknown-target" });
    expect(answer.message).toContain("shop/none");
  });

  test("names what is left when a heal fails", async () => {
    const agent = observingAgent();
    agent.heal = (shown, order) => healing(agent, shown, order, "failed", () => WITH_GHOST);

    const answer = await healAsShown(agent);

    expect(answer).toMatchObject({ outcome: "incomplete", totals: { planned: 1, healed: 0, left: 1 } });
    expect(answer.left?.[0]).toContain(CLASS);
  });

  test("answers that there is nothing to heal once it was healed", async () => {
    const agent = actingAgent();
    expect(await healAsShown(agent)).toMatchObject({ outcome: "healed", totals: { planned: 0, healed: 0, left: 0 } });
  });

  test.each([
    ["paused", { paused: true, node: false }],
    ["opted-out", { paused: false, node: true }],
  ])("is refused on a node that is %s", async (code, held) => {
    const agent = observingAgent();
    const kubernetes = { source: "api", nodeName: "n1", pods: [], holds: { ...held, namespaces: [] } } as const;
    agent.sources = { kubernetes };

    const answer = await healAsShown(agent);

    expect(answer).toMatchObject({ outcome: "refused", code });
    expect(agent.healed).toEqual([]);
  });

  test.each(["breaker", "slots"] as const)("is refused while the fleet's %s does not allow it", async (limit) => {
    const agent = observingAgent();
    agent.gate = () => Promise.resolve({ kind: "wait", reason: limit, message: "as many as may", meanwhile: [] });

    const answer = await healAsShown(agent);

    expect(answer).toMatchObject({ outcome: "refused", code: limit, message: "as many as may" });
    expect(agent.healed).toEqual([]);
  });

  test("returns its fleet slot, and is refused while another run has the lock", async () => {
    const agent = observingAgent();
    let released = 0;
    agent.gate = () => Promise.resolve({ kind: "go", release: () => Promise.resolve(void released++) });
    agent.heal = () => Promise.resolve(refuse("Another run heals.", "Wait.", "lock"));

    const answer = await healAsShown(agent);

    expect(answer).toMatchObject({ outcome: "refused", code: "lock", message: "Another run heals." });
    expect(released).toBe(1);
  });

  test("does not touch unghost's own pod, nor a namespace that the policy leaves out", async () => {
    const agent = observingAgent();
    const { pod } = sandboxOf("a");
    const own = await ask(agent, { columns: 200 }, pod.uid);
    agent.policy = { ...agent.policy, ignoredNamespaces: [pod.namespace] };
    const leftOut = await ask(agent, { columns: 200 });

    expect(own).toMatchObject({ totals: { planned: 0, left: 1 } });
    expect(own.plan).toContain("unghost itself runs in this pod");
    expect(leftOut).toMatchObject({ totals: { planned: 0, left: 1 } });
    expect(leftOut.plan).toContain("is left out");
  });

  test("waits for a heal in flight, and the agent starts none meanwhile", async () => {
    const agent = actingAgent();
    agent.policy = policyFrom({});
    agent.node = WITH_GHOST;
    const order: string[] = [];
    const gate = Promise.withResolvers<void>();
    agent.heal = async (shown, how) => {
      order.push("starts");
      await gate.promise;
      const done = await healing(agent, shown, how, "healed", () => ({}));
      order.push("ends");
      return done;
    };
    await agent.cycle.run();
    const asked = ask(agent, { dryRun: false, planDigest: `sha256:${"0".repeat(64)}` });
    gate.resolve();
    order.push((await asked).code ?? "done");

    expect(order).toEqual(["starts", "ends", "plan-changed"]);
  });
});
