import { expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { read } from "../../src/host/source.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { KnownPod, Kubernetes } from "../../src/node/types/snapshot.ts";
import { buildReport } from "../../src/report/build.ts";
import { countBlocked } from "../../src/report/pending.ts";
import { klog } from "../support/log-lines.ts";
import {
  idOf,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  snapshotOf,
  THICK_MULTUS,
} from "../support/snapshot-builder.ts";

const NEW = ["a", "b", "c"];
const DELETED = ["d", "e"];
const FORCED = "f";

const known = (digit: string, more: Partial<KnownPod>): KnownPod => ({
  namespace: "default",
  name: `pod-${digit}`,
  uid: podUid(digit),
  ...more,
});
const kubernetes: Kubernetes = {
  source: "api",
  pods: [
    ...NEW.map((digit) => known(digit, { phase: "Pending" })),
    ...DELETED.map((digit) => known(digit, { phase: "Running", terminating: true })),
  ],
  holds: { paused: false, node: false, namespaces: [] },
};
const parts: NodeParts = {
  conf: THICK_MULTUS,
  sandboxes: [...DELETED, FORCED].map((digit) => sandboxOf(digit)),
  records: [...NEW, ...DELETED, FORCED].map((digit) => recordOf(digit)),
  results: [...DELETED, FORCED].map((digit) => resultOf(digit)),
};
const calls = (command: string) =>
  [...NEW, ...DELETED, FORCED].map((digit, index) => ({
    ...pluginFor(digit, NEW.includes(digit) ? "ADD" : "DEL", 90, 500 + index),
    command,
  }));

test.each([
  [
    "a multus daemon that is down",
    snapshotOf(
      { ...parts, plugins: calls("/opt/cni/bin/multus-shim") },
      { kubernetes, multusDaemon: { socket: "/run/multus/multus.sock", state: "dead" } },
    ),
  ],
  [
    "the hung daemon of a plugin",
    snapshotOf(
      { ...parts, plugins: calls("/opt/cni/bin/kube-ovn") },
      {
        kubernetes,
        cniDaemons: read([{ socket: "/run/kube-ovn.sock", plugins: ["kube-ovn"], state: "listening" } as const]),
      },
    ),
  ],
  [
    "a plugin that holds the CNI lock",
    {
      ...snapshotOf({ ...parts, plugins: calls("/opt/cni/bin/bridge") }, { kubernetes }),
      cri: read({
        conditions: [],
        containers: [],
        sandboxes: [...DELETED, FORCED].map((digit) => sandboxOf(digit)),
        statusHangsMs: 5000,
      }),
    },
  ],
])(
  "deleted pods do not count as blocked by %s: they are listed as being deleted, and those gone are not",
  (_, snapshot) => {
    const diagnosis = diagnose(snapshot, PATIENT);
    const report = buildReport(snapshot, diagnosis);
    const [finding, ...others] = report.findings;

    expect(others).toEqual([]);
    expect(finding?.blockedPods?.map(({ name }) => name)).toEqual(NEW.map((digit) => `pod-${digit}`));
    expect(finding?.terminatingPods?.map(({ name }) => name)).toEqual(DELETED.map((digit) => `pod-${digit}`));
    expect(countBlocked(report)).toBe(NEW.length);
  },
);

test("the ghost of a pod that is gone blocks no pod, and that of a deleted one its deletion", () => {
  const ghosts: NodeParts = {
    sandboxes: [sandboxOf("d"), sandboxOf(FORCED)],
    records: [recordOf("d"), recordOf(FORCED)],
    results: [resultOf("d", "empty"), resultOf(FORCED, "empty")],
  };
  const { findings } = diagnose(snapshotOf(ghosts, { kubernetes }), PATIENT);
  const ofPod = (name: string) => findings.find(({ subject }) => "pod" in subject && subject.pod?.name === name);

  expect(ofPod("pod-d")).toMatchObject({ blockedPods: [], terminatingPods: [{ name: "pod-d" }] });
  expect(ofPod("pod-f")?.blockedPods).toEqual([]);
  expect(ofPod("pod-f")?.terminatingPods ?? []).toEqual([]);
});

test("a deleted pod does not count as blocked because its creation fails", () => {
  const failed = klog(
    20,
    `"RunPodSandbox from runtime service failed" err="rpc error: code = Unknown desc = failed to reserve sandbox name \\"pod-d_default_d_0\\": name \\"pod-d_default_d_0\\" is reserved for \\"${idOf("d")}\\""`,
  );
  const creating: NodeParts = {
    records: [recordOf("d", { hasCniResult: false })],
    plugins: [pluginFor("d", "ADD", 25)],
    logLines: [failed],
  };
  const { podCreation, pending } = diagnose(snapshotOf(creating, { kubernetes }), PATIENT);

  expect(pending).toMatchObject([{ reason: "creation-retrying", pod: { name: "pod-d" } }]);
  expect(podCreation.blockedPods).toEqual([]);
});
