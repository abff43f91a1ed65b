import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import type { DiagnosisPolicy } from "../../src/evidence/policy.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { podUid } from "../../src/snapshot/ids.ts";
import type { Holds, KnownPod, UnattachedVolume } from "../../src/snapshot/types/kubernetes.ts";
import { ago, PATIENT, snapshotOf } from "../support/snapshot-builder.ts";

const HOLDS: Holds = { paused: false, node: false, namespaces: [] };
const NAME = "csi-1f";
const ID = `volume-attachment-stuck/${NAME}`;
const DB: KnownPod = { namespace: "shop", name: "db-0", uid: podUid("u1"), phase: "Pending", claims: ["data"] };
const LEASE = { name: "csi/lease", holder: "ctrl-1", durationSeconds: 15, renewedAt: ago(3) };

const WAITING: UnattachedVolume = {
  name: NAME,
  uid: "v1",
  attacher: "driver.example",
  node: "node",
  volume: "pvc-1",
  attached: false,
  createdAt: ago(600),
  deleting: false,
  finalizers: [],
  claim: { namespace: "shop", name: "data" },
  attachedTo: [],
  lease: LEASE,
  unknown: [],
};

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
    ["ten minutes after its deletion, still attached", { attached: true, deleting: true, deletedAt: ago(600) }, true],
    ["one minute after its deletion", { attached: true, deleting: true, deletedAt: ago(60) }, false],
    ["an unknown time", { createdAt: new Date("no time") }, false],
  ])("a volume that waits for %s: %o", (_, volume, isFound) => {
    expect(scanOf(volume).findings.map(({ id }) => id)).toEqual(isFound ? [ID] : []);
  });

  test("an attachment that is still attached after its deletion is reported so, and blocks no running pod", () => {
    const lease = { ...LEASE, renewedAt: ago(900) };
    const running = { ...DB, phase: "Running" };

    const seen = scanOf({ attached: true, deleting: true, deletedAt: ago(600), lease }, { pods: [running] });

    expect(seen.findings[0]).toMatchObject({
      severity: "warning",
      summary: "pvc-1 is still attached to this node 10m after its attachment was deleted",
      blocks: [],
      cure: [],
    });
    expect(factsOf(seen)).toMatch(/attached: true by driver\.example/);
    expect(factsOf(seen)).toMatch(/is silent/);
  });

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
    ["where else it is attached", { attachedTo: ["n2"] }, /attached to n2/],
    ["a running attacher", {}, /driver\.example works: ctrl-1/],
    ["a silent attacher", { lease: { ...LEASE, renewedAt: ago(900) } }, /is silent: ctrl-1 last renewed its lease 15m/],
    ["a deletion that hangs", { deleting: true, finalizers: ["a/b"] }, /its deletion waits for a\/b/],
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

  const policy = { ...PATIENT, allDead: false, cap: 10, only: ["volume-attachment-stuck"] };
  test.each<readonly [string, Partial<UnattachedVolume>, readonly KnownPod[], RegExp]>([
    ["its attacher fails", { error: "volume is in use" }, [DB], /what the attacher driver\.example logs/],
    ["it is attached elsewhere", { attachedTo: ["n2"] }, [DB], /must be detached from n2 first/],
    ["its pod is opted out", {}, [{ ...DB, ignored: true }], /opted out by unghost\.dev\/ignore/],
    [
      "it is already being deleted",
      { deleting: true, finalizers: ["a/b"] },
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
