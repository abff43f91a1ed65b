import { describe, expect, test } from "vitest";
import { type Diagnosis, diagnose } from "../../src/diagnose/diagnose.ts";
import { absent } from "../../src/host/source.ts";
import { sandboxName } from "../../src/node/types/ids.ts";
import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import type { Holds, KnownPod } from "../../src/node/types/snapshot.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import {
  addressOf,
  ago,
  delErrorLine,
  idOf,
  MULTUS,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  scratchOf,
  snapshotOf,
  THICK_MULTUS,
} from "../support/snapshot-builder.ts";

function lockLine(digit: string): string {
  const name = sandboxName(sandboxOf(digit).pod);
  const error = `rpc error: code = Unknown desc = failed to reserve sandbox name \\"${name}\\": name \\"${name}\\" is reserved for \\"${idOf(digit)}\\"`;
  return `E0301 11:59:00.000001     811 log.go:32] "RunPodSandbox from runtime service failed" err="${error}"`;
}

describe("sandbox-name-held-by-inflight-run", () => {
  const A1 = `sandbox-name-held-by-inflight-run/${idOf("a")}`;
  const recorded = recordOf("a", { hasCniResult: false });

  test("is an ADD older than the grace period, with its process to end", () => {
    const plugins = [pluginFor("a", "ADD", 900, 501), pluginFor("a", "ADD", 901, 500)];
    const { findings } = diagnosed({ records: [recorded], plugins }, PATIENT);

    expect(findings).toMatchObject([
      {
        id: A1,
        severity: "critical",
        subject: { pid: 500, pod: { name: "pod-a", attempt: 0 }, name: "pod-a_default_a_0" },
        blocks: [expect.stringContaining("pod-a_default_a_0")],
        cure: [{ kind: "end-process", pid: 500 }],
      },
    ]);
  });

  test.each([
    ["that is young", [pluginFor("a", "ADD", 30)], []],
    ["that is young, though a caller already waits for its name", [pluginFor("a", "ADD", 20)], [lockLine("a")]],
  ])("is not an ADD %s: it is kept, and reported as in flight", (_, plugins, logLines) => {
    const { findings, kept } = diagnosed({ records: [recorded], plugins, logLines }, PATIENT);

    expect(findings).toEqual([]);
    expect(kept).toMatchObject([
      { sandboxId: idOf("a"), pod: { name: "pod-a" }, reason: { code: "creation-in-flight" } },
    ]);
  });

  test("is a holder that the runtime reports, recorded long ago and never listed", () => {
    const old = { ...recorded, createdAt: ago(900) };

    expect(named(diagnosed({ records: [old], logLines: [lockLine("a")] }, PATIENT))).toEqual([A1]);
    expect(named(diagnosed({ records: [recorded], logLines: [lockLine("a")] }, PATIENT))).toEqual([A1]);
    const young = { ...recorded, createdAt: ago(20) };
    expect(named(diagnosed({ records: [young], logLines: [lockLine("a")] }, PATIENT))).toEqual([]);
  });

  test.each<readonly [string, NodeParts]>([
    ["a daemon that an earlier ADD left behind", { plugins: [pluginFor("a", "ADD", 900)] }],
    [
      "the plugin of a running pod",
      { sandboxes: [sandboxOf("a", { state: "ready" })], plugins: [pluginFor("a", "ADD", 900)], records: [recorded] },
    ],
    ["a holder without another trace", { logLines: [lockLine("a")] }],
    ["a record without a waiting caller", { records: [recorded] }],
  ])("is not %s", (_, parts) => {
    expect(named(diagnosed(parts, PATIENT))).toEqual([]);
  });

  describe("without a process that explains it", () => {
    const parts: NodeParts = { records: [recorded], logLines: [lockLine("a")] };
    const pod: KnownPod = {
      namespace: "default",
      name: "pod-a",
      uid: sandboxOf("a").pod.uid,
      controller: "ReplicaSet",
    };
    const holds = { paused: false, node: false, namespaces: [] };
    const withPods = (pods: readonly KnownPod[], more: Partial<Holds> = {}): Diagnosis => {
      const kubernetes = { source: "api", nodeName: "n1", pods, holds: { ...holds, ...more } } as const;
      return diagnose(snapshotOf(parts, { kubernetes }), PATIENT);
    };

    test("offers to re-create the pod, which needs consent", () => {
      const diagnosis = withPods([pod]);
      const policy = { ...PATIENT, allDead: false, cap: 10 };

      expect(diagnosis.findings).toMatchObject([
        {
          id: A1,
          cure: [{ kind: "kick-pod", namespace: "default", name: "pod-a", uid: "a", node: "n1", holder: idOf("a") }],
          treatment: { automatic: false, steps: [expect.stringContaining("Delete the pod"), expect.anything()] },
        },
      ]);
      expect(planHealing(diagnosis, policy).actions).toEqual([]);
      const byName = planHealing(diagnosis, { ...policy, consented: new Set(["sandbox-name-held-by-inflight-run"]) });
      const byPolicy = planHealing(diagnosis, { ...policy, consented: new Set(["sandbox-name-held-by-inflight-run"]) });
      for (const { actions } of [byName, byPolicy]) expect(actions).toMatchObject([{ steps: [{ kind: "kick-pod" }] }]);
    });

    const { controller: _none, ...bare } = pod;
    test.each<readonly [string, KnownPod, Partial<Holds>]>([
      ["a bare pod", bare, {}],
      ["a mirror pod of a static pod", { ...pod, objectUid: "mirror" }, {}],
      ["an ignored pod", { ...pod, ignored: true }, {}],
      ["a pod of an ignored namespace", pod, { namespaces: ["default"] }],
    ])("is found without a remedy for %s", (_what, one, more) => {
      const { findings } = withPods([one], more);

      expect(findings).toMatchObject([{ id: A1, cure: [] }]);
    });

    test.each<readonly [string, readonly KnownPod[]]>([
      ["is gone", []],
      ["is being deleted", [{ ...pod, terminating: true }]],
    ])("is not a finding when its pod %s: no pod waits for the name", (_what, pods) => {
      expect(withPods(pods).findings).toEqual([]);
    });
  });

  test("needs no record when the runtime has no readable records", () => {
    const snapshot = snapshotOf(
      { plugins: [pluginFor("a", "ADD", 900)], runtimeName: "cri-o" },
      { containerd: absent("CRI-O") },
    );

    expect(named(diagnose(snapshot, PATIENT))).toEqual([A1]);
  });
});

describe("clock-step-sandbox-attempt-reuse", () => {
  const first = sandboxOf("a", { uid: "p", attempt: 0, createdSecondsAgo: 600 });

  test("is the later attempt with the earlier creation time", () => {
    const second = sandboxOf("b", { uid: "p", attempt: 1, createdAt: 60_000_000_000n });

    const { findings } = diagnosed({ sandboxes: [first, second], records: [recordOf("a"), recordOf("b")] });
    expect(findings.map(({ id }) => id)).toEqual([`clock-step-sandbox-attempt-reuse/${idOf("b")}`]);
    expect(findings[0]?.evidence.at(-1)?.fact).toContain("1970-01-01");
  });

  test.each([
    ["attempts in their order", sandboxOf("b", { uid: "p", attempt: 1, createdSecondsAgo: 500 })],
    [
      "the later attempt that is running",
      sandboxOf("b", { uid: "p", attempt: 1, createdSecondsAgo: 900, state: "ready" }),
    ],
    ["attempts of another pod", sandboxOf("b", { uid: "q", attempt: 1, createdSecondsAgo: 900 })],
  ])("is not %s", (_, second) => {
    const parts = { sandboxes: [first, second], records: [recordOf("a"), recordOf("b")] };

    expect(named(diagnosed(parts))).toEqual([]);
  });

  test("is not an incomplete sandbox, which has a zero time", () => {
    const halfMade = sandboxOf("b", { uid: "p", attempt: 1, createdAt: ZERO_TIME });

    expect(named(diagnosed({ sandboxes: [first, halfMade], records: [recordOf("a")] }))).toEqual([
      `failed-rollback-unknown-sandbox/${idOf("b")}`,
    ]);
  });
});

describe("an incompletely created sandbox", () => {
  const halfMade = sandboxOf("a", { createdAt: ZERO_TIME });
  const stored = { id: idOf("a"), labels: {} };
  const DELEGATES_RESULT = resultOf("a", "ok", "/var/lib/cni/multus/results");

  test.each<readonly [string, NodeParts, string]>([
    ["has no other trace", {}, "failed-rollback-unknown-sandbox"],
    ["has a container record", { records: [recordOf("a")] }, "failed-rollback-unknown-sandbox"],
    [
      "was stored before the runtime started",
      { storeRecords: [{ ...stored, createdAt: ago(7200) }] },
      "zero-createdat-record",
    ],
    [
      "was stored since the runtime started",
      { storeRecords: [{ ...stored, createdAt: ago(60) }] },
      "failed-rollback-unknown-sandbox",
    ],
    ["is on a node with multus", { conf: MULTUS }, "multus-cache-consumed-rebuilt-config"],
  ])("that %s", (_, parts, expected) => {
    expect(named(diagnosed({ ...parts, sandboxes: [halfMade] }))).toEqual([`${expected}/${idOf("a")}`]);
  });

  const recovered: NodeParts = { sandboxes: [halfMade], storeRecords: [{ ...stored, createdAt: ago(7200) }] };

  test("that was recovered without its name: no text of the finding claims that the name is reserved", () => {
    const [finding] = diagnosed(recovered).findings;

    expect(finding?.blocks).toEqual([]);
    expect(JSON.stringify(finding)).not.toMatch(/stays reserved|name stays|is reserved/);
    expect(finding?.summary).toContain("without reserving its name");
  });

  test.each<readonly [string, NodeParts]>([
    ["nothing", {}],
    ["leaks of the delegates of thick multus", { conf: THICK_MULTUS, results: [DELEGATES_RESULT] }],
    ["an address", { conf: THICK_MULTUS, addresses: [addressOf("a", "10.88.0.2")] }],
    ["a refused DEL", { logLines: [delErrorLine("a", "server_socket is required in cni.conf")] }],
    ["a name that a caller needs", { logLines: [lockLine("a")] }],
    ["a second record of its name", { sandboxes: [halfMade, { ...halfMade, id: idOf("b") }] }],
    ["torn caches", { conf: MULTUS, results: [resultOf("a", "empty")], multus: [scratchOf("a", "empty")] }],
  ])("with %s is a finding of one class", (_, parts) => {
    const { findings, pending, kept } = diagnosed({ ...recovered, ...parts });
    const about = (id: string | undefined) => id === idOf("a");
    const subjects = findings.filter(({ subject }) => "sandboxId" in subject && about(subject.sandboxId));

    expect(subjects.map(({ class: id }) => id)).toHaveLength(1);
    expect([...pending, ...kept].filter(({ sandboxId }) => about(sandboxId))).toEqual([]);
  });
});
