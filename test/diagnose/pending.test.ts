import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { KnownPod, Kubernetes, PodEvent } from "../../src/node/types/snapshot.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import { containerdLine, klog } from "../support/log-lines.ts";
import {
  ago,
  idOf,
  NOW,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const timedOut = (uid: string, secondsAgo: number): string =>
  klog(
    secondsAgo,
    `"Error syncing pod, skipping" err="failed to \\"CreatePodSandbox\\" for \\"pod-${uid}_default(${uid})\\" with CreatePodSandboxError: \\"Failed to create sandbox for pod \\\\\\"pod-${uid}_default(${uid})\\\\\\": rpc error: code = DeadlineExceeded desc = context deadline exceeded\\"" pod="default/pod-${uid}" podUID="${uid}"`,
  );

const nameTaken = (digit: string, uid: string, secondsAgo: number): string =>
  klog(
    secondsAgo,
    `"RunPodSandbox from runtime service failed" err="rpc error: code = Unknown desc = failed to reserve sandbox name \\"pod-${uid}_default_${uid}_0\\": name \\"pod-${uid}_default_${uid}_0\\" is reserved for \\"${idOf(digit)}\\""`,
  );

const stopTimedOut = (digit: string, secondsAgo: number): string =>
  klog(
    secondsAgo,
    `"StopPodSandbox from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded" podSandboxID="${idOf(digit)}"`,
  );

function creating(digit: string, ageSeconds: number, logLines: readonly string[] = []): NodeParts {
  const record = { ...recordOf(digit, { hasCniResult: false }), createdAt: ago(ageSeconds) };
  return { records: [record], plugins: [pluginFor(digit, "ADD", ageSeconds)], logLines };
}

describe("a creation in flight", () => {
  test("is pending, and the node healthy, while no error is reported", () => {
    const { verdict, pending, findings, podCreation } = diagnosed(creating("a", 120), PATIENT);

    expect([verdict, findings, podCreation.able]).toEqual(["healthy", [], "yes"]);
    expect(pending).toMatchObject([
      {
        reason: "creation-in-flight",
        pod: { namespace: "default", name: "pod-a" },
        sandboxId: idOf("a"),
        since: ago(120),
        waitsFor: { kind: "plugin", pid: 500, cniCommand: "ADD" },
        reported: [],
        becomesFindingAt: new Date(NOW.getTime() + 480_000),
      },
    ]);
  });

  test("makes the node degraded once it exceeds kubelet's timeout, even without a report", () => {
    const within = diagnosed(creating("a", 235), PATIENT);
    const beyond = diagnosed(creating("a", 245), PATIENT);

    expect([within.verdict, within.pending[0]?.reason]).toEqual(["healthy", "creation-in-flight"]);
    expect([beyond.verdict, beyond.pending[0]?.reason]).toEqual(["degraded", "creation-overdue"]);
    expect(beyond.podCreation).toMatchObject({ able: "unknown", blockedPods: [{ name: "pod-a" }] });
  });

  test("makes the node degraded as soon as kubelet reports its timeout", () => {
    const { verdict, pending, podCreation } = diagnosed(creating("a", 245, [timedOut("a", 5)]), PATIENT);

    expect(verdict).toBe("degraded");
    expect(pending).toMatchObject([
      { reason: "creation-retrying", reported: [{ by: "kubelet", code: "deadline-exceeded", operation: "create" }] },
    ]);
    expect(podCreation).toMatchObject({
      able: "no",
      lastFailure: { code: "deadline-exceeded", at: ago(5) },
      blockedPods: [{ namespace: "default", name: "pod-a" }],
    });
  });

  test("is a finding thirty seconds after its caller timed out", () => {
    const before = diagnosed(creating("a", 265, [timedOut("a", 25)]), PATIENT);
    const after = diagnosed(creating("a", 275, [timedOut("a", 35)]), PATIENT);

    expect([before.verdict, named(before)]).toEqual(["degraded", []]);
    expect([after.verdict, named(after), after.pending]).toEqual([
      "ghosts",
      [`sandbox-name-held-by-inflight-run/${idOf("a")}`],
      [],
    ]);
  });

  test("is a finding thirty seconds after its name was refused to a retry", () => {
    const found = diagnosed(creating("a", 45, [nameTaken("a", "a", 40)]), PATIENT);

    expect(named(found)).toEqual([`sandbox-name-held-by-inflight-run/${idOf("a")}`]);
  });

  test("is judged by --inflight-grace alone when that is set", () => {
    const policy = { ...PATIENT, inflightGraceMs: 1_800_000, abandonedGraceMs: 1_800_000 };

    expect(named(diagnosed(creating("a", 500, [timedOut("a", 200)]), policy))).toEqual([]);
  });

  test("is not blamed in its first minute for a timeout of the previous attempt", () => {
    const found = diagnosed(creating("a", 20, [timedOut("a", 25)]), PATIENT);

    expect([found.verdict, named(found)]).toEqual(["degraded", []]);
    expect(found.pending).toMatchObject([{ reason: "creation-retrying" }]);
  });

  test("includes the time that its pod waited over several attempts", () => {
    const rounds = [timedOut("a", 760), timedOut("a", 510), timedOut("a", 260)];

    expect(named(diagnosed(creating("a", 90, rounds.slice(1)), PATIENT))).toEqual([]);
    expect(named(diagnosed(creating("a", 90, rounds), PATIENT))).toEqual([
      `sandbox-name-held-by-inflight-run/${idOf("a")}`,
    ]);
  });

  test("is not judged by a line without a known envelope", () => {
    const forged = timedOut("a", 60).replace(/^E\S+ \S+\s+\d+ \S+ /, "");

    expect(diagnosed(creating("a", 120, [forged]), PATIENT).verdict).toBe("healthy");
  });
});

describe("a failed creation", () => {
  const known = { pods: ["a"] } satisfies NodeParts;

  test("makes the node degraded while kubelet still wants the pod", () => {
    const { verdict, pending } = diagnosed({ ...known, logLines: [timedOut("a", 60)] }, PATIENT);

    expect([verdict, pending.map(({ reason }) => reason)]).toEqual(["degraded", ["creation-failing"]]);
  });

  test.each([
    ["the pod is gone", { pods: ["b"], logLines: [timedOut("a", 60)] }],
    [
      "the pod runs",
      { ...known, sandboxes: [sandboxOf("c", { uid: "a", state: "ready" })], logLines: [timedOut("a", 60)] },
    ],
    ["it is old", { ...known, logLines: [timedOut("a", 900)] }],
    ["it is unknown whether the pod is wanted", { logLines: [timedOut("a", 60)] }],
  ] satisfies [string, NodeParts][])("is ignored when %s", (_, parts) => {
    const { verdict, pending } = diagnosed(parts, PATIENT);

    expect([verdict, pending]).toEqual(["healthy", []]);
  });

  test("also counts from an event of the cluster", () => {
    const { verdict, pending } = diagnose(snapshotOf({}, { kubernetes: cluster("FailedCreatePodSandBox") }), PATIENT);

    expect(verdict).toBe("degraded");
    expect(pending).toMatchObject([{ reason: "creation-failing", reported: [{ by: "kubernetes", count: 7 }] }]);
  });

  test("is ignored when the event is dated after now, because it is from before the clock was set back", () => {
    const kubernetes = cluster("FailedCreatePodSandBox", ago(-7200));
    const { verdict, pending } = diagnose(snapshotOf({}, { kubernetes }), PATIENT);

    expect([verdict, pending]).toEqual(["healthy", []]);
  });

  test("is pending and not degraded when the pod waits for a volume", () => {
    const { verdict, pending } = diagnose(snapshotOf({}, { kubernetes: cluster("FailedMount") }), PATIENT);

    expect([verdict, pending.map(({ reason }) => reason)]).toEqual(["healthy", ["creation-waiting"]]);
  });
});

function cluster(reason: string, at = ago(30)): Kubernetes {
  const pod: KnownPod = { namespace: "default", name: "pod-a", uid: podUid("a"), phase: "Pending" };
  const event: PodEvent = {
    namespace: "default",
    pod: "pod-a",
    uid: "a",
    reason,
    message: "Failed: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    count: 7,
    at,
  };
  return { source: "api", pods: [pod], events: [event], holds: { paused: false, node: false, namespaces: [] } };
}

describe("a removal", () => {
  test("that kubelet reports as failing is pending and not also kept", () => {
    const { pending, kept } = diagnosed({ sandboxes: [sandboxOf("a")], logLines: [stopTimedOut("a", 30)] }, PATIENT);

    expect(pending.map(({ reason }) => reason)).toEqual(["removal-failing"]);
    expect(kept).toEqual([]);
  });

  test("that kubelet reports as failing makes the node degraded", () => {
    const parts = { sandboxes: [sandboxOf("a", { state: "ready" })], logLines: [stopTimedOut("a", 30)] };
    const { verdict, pending } = diagnosed(parts, PATIENT);

    expect([verdict, pending.map(({ reason }) => reason)]).toEqual(["degraded", ["removal-failing"]]);
  });

  test("without a reported error is only pending", () => {
    const parts = { sandboxes: [sandboxOf("a")], plugins: [pluginFor("a", "DEL", 20)] };
    const { verdict, pending } = diagnosed(parts, PATIENT);

    expect([verdict, pending.map(({ reason }) => reason)]).toEqual(["healthy", ["removal-in-flight"]]);
  });

  test("makes the node degraded once it exceeds kubelet's timeout, even without a report", () => {
    const parts = { sandboxes: [sandboxOf("a")], plugins: [pluginFor("a", "DEL", 125)] };
    const { verdict, pending } = diagnosed(parts, PATIENT);

    expect([verdict, pending.map(({ reason }) => reason)]).toEqual(["degraded", ["removal-overdue"]]);
  });

  test("that failed before the runtime released the network is over", () => {
    const released = containerdLine(10, "info", `TearDown network for sandbox "${idOf("a")}" successfully`);
    const parts = { sandboxes: [sandboxOf("a")], logLines: [released, stopTimedOut("a", 30)] };
    const failedAgain = { ...parts, logLines: [...parts.logLines, stopTimedOut("a", 5)] };

    const over = diagnosed(parts, PATIENT);
    expect([over.verdict, over.pending, over.kept.map(({ sandboxId }) => sandboxId)]).toEqual([
      "healthy",
      [],
      [idOf("a")],
    ]);
    expect(diagnosed(failedAgain, PATIENT)).toMatchObject({
      verdict: "degraded",
      pending: [{ reason: "removal-failing", reported: [{ count: 1 }] }],
    });
  });

  test("that failed is not over when the network of another sandbox was released", () => {
    const released = containerdLine(10, "info", `TearDown network for sandbox "${idOf("b")}" successfully`);
    const parts = { sandboxes: [sandboxOf("a")], logLines: [released, stopTimedOut("a", 30)] };

    expect(diagnosed(parts, PATIENT).verdict).toBe("degraded");
  });
});
