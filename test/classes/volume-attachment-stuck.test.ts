import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import type { DiagnosisPolicy } from "../../src/evidence/view.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { Holder, Holds, KnownPod, Kubernetes, UnattachedVolume } from "../../src/node/types/snapshot.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { buildReport } from "../../src/report/build.ts";
import { ago, PATIENT, snapshotOf } from "../support/snapshot-builder.ts";

const HOLDS: Holds = { paused: false, node: false, namespaces: [] };
const NAME = "csi-1f";
const ID = `volume-attachment-stuck/${NAME}`;
const DB: KnownPod = { namespace: "shop", name: "db-0", uid: podUid("u1"), phase: "Pending", claims: ["data"] };
const LEASE = { holder: "ctrl-1", durationSeconds: 15, renewedAt: ago(3) };

const WAITING: UnattachedVolume = {
  name: NAME,
  attacher: "driver.example",
  node: "node",
  volume: "pvc-1",
  attached: false,
  createdAt: ago(600),
  finalizers: [],
  claim: { namespace: "shop", name: "data" },
  inUse: false,
  holders: [],
  lease: LEASE,
  unknown: [],
};

const THERE = { kind: "there", ready: true, cordoned: false, inUse: false } as const;

/** The volume is attached to another node in this state. */
function holder(state: Holder["state"], deleting = false): Partial<UnattachedVolume> {
  return { holders: [{ node: "n2", deleting, state }] };
}

function scanOf(
  volume: Partial<UnattachedVolume>,
  { pods = [DB], holds = HOLDS }: { readonly pods?: readonly KnownPod[]; readonly holds?: Holds } = {},
  policy: DiagnosisPolicy = PATIENT,
) {
  const unattached = [{ ...WAITING, ...volume }];
  return diagnose(snapshotOf({}, { kubernetes: { source: "api", pods, holds, unattached } }), policy);
}

function factsOf({ findings }: ReturnType<typeof scanOf>): string {
  return findings.flatMap(({ evidence }) => evidence.map(({ fact }) => fact)).join("\n");
}

describe("volume-attachment-stuck", () => {
  test.each<readonly [string, Partial<UnattachedVolume>, boolean]>([
    ["ten minutes", {}, true],
    ["one minute", { createdAt: ago(60) }, false],
    ["ten minutes after its deletion, still attached", { attached: true, deletedAt: ago(600) }, true],
    ["one minute after its deletion", { attached: true, deletedAt: ago(60) }, false],
    ["an unknown time", { createdAt: new Date("no time") }, false],
  ])("a volume that waits for %s: %o", (_, volume, isFound) => {
    expect(scanOf(volume).findings.map(({ id }) => id)).toEqual(isFound ? [ID] : []);
  });

  test("an attachment that is still attached after its deletion is reported so, and blocks no running pod", () => {
    const lease = { ...LEASE, renewedAt: ago(900) };
    const running = { ...DB, phase: "Running" };

    const seen = scanOf({ attached: true, deletedAt: ago(600), lease }, { pods: [running] });

    expect(seen.findings[0]).toMatchObject({
      severity: "warning",
      summary: "pvc-1 is still attached to this node 10m after its attachment was deleted",
      blocks: [],
      cure: [],
    });
    expect(factsOf(seen)).toMatch(/attached: true by driver\.example/);
    expect(factsOf(seen)).toMatch(/is silent/);
  });

  test.each<readonly [string, Kubernetes, string]>([
    [
      "kubelet's own credentials",
      { source: "api", pods: [], holds: HOLDS, unattachedUnread: "kubelet's own credentials may not list them" },
      "kubelet's own credentials may not list them",
    ],
    ["an API server that does not answer", { source: "kubelet", pods: [], error: "it is down" }, "it is down"],
    ["no API server to ask", { source: "none" }, "no API server was asked"],
  ])("asked for by name with %s is unknown, and says why", (_, kubernetes, why) => {
    const snapshot = snapshotOf({}, { kubernetes });
    const asked = (only: readonly string[]) => {
      const diagnosis = diagnose(snapshot, { ...PATIENT, only });
      const { problems } = buildReport(snapshot, diagnosis);
      return [diagnosis.verdict, problems.flatMap(({ problem }) => (problem.includes("is unknown") ? [problem] : []))];
    };

    expect(asked(["volume-attachment-stuck"])).toEqual(["unknown", [expect.stringContaining(why)]]);
    expect(asked(["shim-leak", "volume-attachment-stuck"])[0]).toBe("unknown");
    expect(asked(["shim-leak"])).toEqual(["healthy", []]);
    expect(asked([])).toEqual(["healthy", []]);
  });

  const since = { ...DB, waitingSince: ago(600) };
  const awaited = { node: "n2", attached: true, awaited: true } as const;
  const there = (state: { readonly ready?: boolean; readonly inUse?: boolean }, pods?: readonly string[]) => ({
    holders: [{ node: "n2", deleting: false, state: { ...THERE, ...state }, pods }],
  });
  const old = { ...LEASE, renewedAt: ago(900) };

  test.each<readonly [string, Partial<UnattachedVolume>, RegExp, RegExp]>([
    ["its node is gone", { ...awaited, ...holder({ kind: "gone" }) }, /attached to n2, which is gone/, /by force six/],
    ["its node is not Ready", { ...awaited, ...there({ ready: false }) }, /n2, which is not Ready/, /out-of-service/],
    [
      "its node is back, and its pod runs there",
      { ...awaited, ...there({ inUse: true }, ["shop/db-1"]) },
      /attached to n2, which is Ready/,
      /in use by shop\/db-1: end the pods there/,
    ],
    [
      "its pod was deleted by force there",
      { ...awaited, ...there({ inUse: true }, []) },
      /attached to n2, which is Ready/,
      /no pod uses it any more: a pod was deleted by force there/,
    ],
    [
      "its deletion there waits for an attacher that is silent",
      { ...awaited, holders: [{ node: "n2", deleting: true, state: THERE }], lease: old },
      /attached to n2/,
      /detached from n2 first, and the attacher driver\.example is silent/,
    ],
    [
      "kube-controller-manager is silent",
      { ...awaited, ...holder({ kind: "gone" }), controllerLease: { ...old, holder: "control-1" } },
      /which is gone/,
      /kube-controller-manager, which asks for that, is silent: check its pod \(control-1\)/,
    ],
    [
      "no attachment was requested",
      { missing: true, lease: old },
      /no attachment to this one was requested for 10m/,
      /check that kube-controller-manager runs/,
    ],
    ["no attacher runs", { lease: undefined }, /not attached to this node/, /no attacher has taken it up/],
    ["its attacher is silent", { lease: old }, /not attached to this node/, /is silent: check its pod \(ctrl-1\)/],
    [
      "the storage has it attached already",
      { error: "disk is already attached to vm-7" },
      /not attached to this node/,
      /the storage has it attached already \(disk is already attached to vm-7\)/,
    ],
    [
      "it is attached to two nodes",
      { attached: true, ...there({ inUse: true }, ["shop/db-1"]) },
      /^pvc-1 is attached to this node and to n2 at once$/,
      /or on n2 \(shop\/db-1\).*Delete neither attachment/,
    ],
  ])("the situation is named, with the true next step, and nothing is deleted: %s", (_, volume, summary, advice) => {
    const seen = scanOf(volume, { pods: [since] });
    const consented = new Set(["volume-attachment-stuck"]);
    const plan = planHealing(seen, { ...PATIENT, consented, allDead: true, cap: 10 });

    expect(seen.findings).toMatchObject([{ summary: expect.stringMatching(summary), severity: "critical", cure: [] }]);
    expect(seen.findings[0]?.blockedPods).toMatchObject([{ namespace: "shop", name: "db-0" }]);
    expect(plan.actions).toEqual([]);
    expect(plan.leftAlone).toMatchObject([{ reason: { code: "untreatable", text: expect.stringMatching(advice) } }]);
  });

  test("a volume that runs here although its status says that it is not attached is left to its attacher", () => {
    const seen = scanOf({ inUse: true }, { pods: [{ ...DB, phase: "Running" }] });

    expect(seen.findings).toMatchObject([
      { untreatable: expect.stringMatching(/only its status is wrong/), blocks: [] },
    ]);
  });

  test.each([
    ["is gone", { kind: "gone" }, "degraded"],
    ["is not Ready", { ...THERE, ready: false }, "degraded"],
    ["is Ready", THERE, "healthy"],
  ] satisfies readonly (readonly [string, Holder["state"], string])[])(
    "a pod that waits for a volume of a node that %s: before it is a finding the node is %s",
    (_, state, verdict) => {
      const waiting = { ...DB, waitingSince: ago(60) };
      const { findings, pending, podCreation, ...seen } = scanOf({ ...awaited, ...holder(state) }, { pods: [waiting] });

      expect([seen.verdict, findings]).toEqual([verdict, []]);
      expect(pending).toMatchObject(
        verdict === "healthy"
          ? []
          : [
              {
                reason: "creation-held",
                pod: { name: "db-0" },
                waitsFor: { kind: "volume" },
                becomesFindingAt: ago(-240),
              },
            ],
      );
      expect(podCreation.able).toBe("yes");
    },
  );

  test("the age limit is configurable", () => {
    expect(scanOf({ createdAt: ago(60) }, {}, { ...PATIENT, volumeAttachmentAgeMs: 30_000 }).findings).toHaveLength(1);
    expect(scanOf({}, {}, { ...PATIENT, volumeAttachmentAgeMs: 3_600_000 }).findings).toEqual([]);
  });

  test("lists only the waiting pods", () => {
    const other: KnownPod = { ...DB, name: "other", claims: ["logs"] };
    const elsewhere: KnownPod = { ...DB, namespace: "test" };

    const { findings } = scanOf({}, { pods: [DB, other, elsewhere] });

    expect(findings[0]).toMatchObject({ severity: "critical", blocks: ["pod shop/db-0"] });
    expect(scanOf({}, { pods: [] }).findings[0]).toMatchObject({ severity: "warning", blocks: [] });
  });

  test.each<readonly [string, Partial<UnattachedVolume>, RegExp]>([
    ["the attacher's message", { error: "volume is in use" }, /its status: volume is in use/],
    ["a missing message", {}, /its status gives no reason/],
    ["where else it is attached", { holders: [{ node: "n2", deleting: false }] }, /attached to n2$/m],
    ["a holder that is gone", holder({ kind: "gone" }), /attached to n2, which is gone from the cluster/],
    ["a holder that is off", holder({ ...THERE, ready: false }), /attached to n2, which is not Ready$/m],
    ["a cordoned holder", holder({ ...THERE, cordoned: true }), /attached to n2, which is Ready and cordoned$/m],
    ["a holder that uses it", holder({ ...THERE, inUse: true }), /is Ready, where kubelet reports it in use$/m],
    ["a holder that lets it go", holder(THERE, true), /is Ready, and its attachment there is being deleted$/m],
    ["that it is still in use here", { deletedAt: ago(600), inUse: true }, /kubelet reports it in use on this node/],
    ["a running attacher", {}, /driver\.example works: ctrl-1/],
    ["a silent attacher", { lease: { ...LEASE, renewedAt: ago(900) } }, /is silent: ctrl-1 last renewed its lease 15m/],
    ["a deletion that hangs", { deletedAt: ago(600), finalizers: ["a/b"] }, /its deletion waits for a\/b/],
    ["what it could not read", { unknown: ["not allowed"] }, /not allowed/],
  ])("reports %s", (_, volume, fact) => {
    expect(factsOf(scanOf(volume))).toMatch(fact);
  });

  test("reports that an attacher without a lease cannot be judged", () => {
    const { lease: _lease, ...without } = WAITING;
    const unattached = [without];

    const seen = diagnose(
      snapshotOf({}, { kubernetes: { source: "api", pods: [DB], holds: HOLDS, unattached } }),
      PATIENT,
    );

    expect(factsOf(seen)).toMatch(/whether the attacher driver\.example works is unknown/);
  });

  const policy = { ...PATIENT, allDead: false, cap: 10, consented: new Set(["volume-attachment-stuck"]) };
  test.each<readonly [string, Partial<UnattachedVolume>, readonly KnownPod[], RegExp]>([
    ["its attacher fails", { error: "volume is in use" }, [DB], /what the attacher driver\.example logs/],
    [
      "its attacher is silent",
      { lease: { ...LEASE, renewedAt: ago(900) } },
      [DB],
      /is silent: check its pod \(ctrl-1\)/,
    ],
    ["it is attached elsewhere", { holders: [{ node: "n2", deleting: false }] }, [DB], /detached from n2 first: see/],
    [
      "its holder is gone",
      holder({ kind: "gone" }),
      [DB],
      /from n2 first, which is gone: .* by force six minutes after/,
    ],
    [
      "its holder is off",
      holder({ ...THERE, ready: false }),
      [DB],
      /six minutes .*out-of-service.* destroys data unless n2/,
    ],
    ["its holder uses it", holder({ ...THERE, inUse: true }), [DB], /where it is in use: end the pods there$/],
    ["its holder is cordoned", holder({ ...THERE, inUse: true, cordoned: true }), [DB], /end the pods there \(drain/],
    ["its holder has no use for it", holder(THERE), [DB], /not in use: see what kube-controller-manager logs/],
    ["its holder lets it go", holder(THERE, true), [DB], /which is asked for: see what the attacher logs/],
    ["its pod is opted out", {}, [{ ...DB, ignored: true }], /opted out by unghost\.dev\/ignore/],
    [
      "it is already being deleted",
      { deletedAt: ago(600), finalizers: ["a/b"] },
      [DB],
      /deleted already and waits for a\/b/,
    ],
  ])("is never changed, even with consent, and what is to be done is explained: %s", (_, volume, pods, because) => {
    const consented = new Set(policy.only);
    const { actions, leftAlone } = planHealing(scanOf(volume, { pods }, policy), { ...policy, consented });

    const words = leftAlone.map(({ reason }) => reason.text);
    expect(actions).toEqual([]);
    expect(words).toEqual([expect.stringMatching(because)]);
    expect(words[0]).not.toContain("--only");
  });
});
