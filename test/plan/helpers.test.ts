import { describe, expect, test } from "vitest";
import type { Finding } from "../../src/evidence/finding.ts";
import type { Step } from "../../src/evidence/step.ts";
import { viewOf } from "../../src/evidence/view.ts";
import { absent } from "../../src/host/source.ts";
import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import type { KnownPod, Snapshot } from "../../src/node/types/snapshot.ts";
import { obstaclesOf, sweepAfter } from "../../src/plan/obstacles.ts";
import { afterPluginSockets, csiOf } from "../../src/plan/order.ts";
import type { PlannedAction } from "../../src/plan/plan.ts";
import { doubtAboutClock } from "../../src/plan/policy.ts";
import {
  addressOf,
  idOf,
  MULTUS,
  NOW,
  type NodeParts,
  PATIENT,
  recordOf,
  resultOf,
  type SandboxParts,
  sandboxOf,
  scratchOf,
  snapshotOf,
  THICK_MULTUS,
} from "../support/snapshot-builder.ts";

function view(parts: NodeParts, sources: Partial<Snapshot> = {}) {
  return viewOf(snapshotOf(parts, sources), PATIENT);
}

function nanoseconds(ms: number): bigint {
  return BigInt(ms) * 1_000_000n;
}

describe("clock doubt", () => {
  function doubt(sandboxes: readonly SandboxParts[], observedAt = NOW) {
    const made = sandboxes.map((parts, index) => sandboxOf(String(index), parts));
    return doubtAboutClock(view({ sandboxes: made }, { observedAt }));
  }

  test.each<readonly [string, readonly SandboxParts[]]>([
    ["there is no sandbox", []],
    ["all sandboxes are older", [{ createdSecondsAgo: 1 }, { createdSecondsAgo: 9 }]],
    ["one is dated a moment after now", [{ createdAt: nanoseconds(NOW.getTime() + 5000) }]],
    ["one was never created", [{ createdAt: ZERO_TIME }]],
  ])("none when %s", (_, sandboxes) => {
    expect(doubt(sandboxes)).toBeUndefined();
  });

  test("raised by a sandbox that is dated after now", () => {
    const newestSandbox = new Date(NOW.getTime() + 5001);
    const made = [{ createdSecondsAgo: 1 }, { createdAt: nanoseconds(newestSandbox.getTime()) }];
    const found = doubt(made);
    expect(found).toEqual({
      code: "clock-in-doubt",
      text: `the clock shows ${NOW.toISOString()}, and a sandbox is dated ${newestSandbox.toISOString()}: set the clock, then heal again`,
    });
  });

  test.each([
    [
      "2019-12-31T23:59:59.999Z",
      "the clock shows 2019-12-31T23:59:59.999Z, which is implausible: set it, then heal again",
    ],
    ["2020-01-01T00:00:00.000Z", undefined],
  ])("a clock reading %s: %s", (now, text) => {
    expect(doubt([], new Date(now))).toEqual(text && { code: "clock-in-doubt", text });
  });
});

describe("cleanup after a removal", () => {
  test("releases addresses, replays DEL from each record, and moves intact files", () => {
    const parts = {
      addresses: [addressOf("a", "10.88.0.9")],
      results: [{ ...resultOf("a"), hasConfig: true as const }],
      multus: [scratchOf("a")],
      flannel: [scratchOf("a", "corrupt")],
    };
    const about = view(parts).about(idOf("a"));
    const swept = sweepAfter(idOf("a"), about);
    expect(swept.map(({ kind }) => kind)).toEqual([
      "release-addresses",
      "replay-del",
      "quarantine-file",
      "quarantine-file",
    ]);
    expect(swept[0]).toMatchObject({
      sandboxId: idOf("a"),
      leases: [{ network: "cbr0", address: "10.88.0.9", interfaceName: "eth0" }],
    });
    expect(swept.slice(2)).toMatchObject([
      { path: about.results[0]?.path, health: "orphaned" },
      { path: about.multus?.path, health: "orphaned" },
    ]);
  });

  test("is empty when nothing is left", () => {
    expect(sweepAfter(idOf("a"), view({}).about(idOf("a")))).toEqual([]);
  });
});

describe("obstacles to a removal", () => {
  const NO_CURE = { cure: [] as readonly Step[] } as Finding;

  function obstacles(
    parts: NodeParts,
    { cure = [], sources = {} }: { readonly cure?: readonly Step[]; readonly sources?: Partial<Snapshot> } = {},
  ) {
    const sandbox = sandboxOf("a");
    const whole = view({ sandboxes: [sandbox], records: [recordOf("a")], ...parts }, sources);
    return obstaclesOf({ ...NO_CURE, cure }, sandbox, whole.about(sandbox.id), whole);
  }

  test("every broken file of the sandbox first, then those of the finding", () => {
    const ending: Step = { kind: "end-process", pid: 7, startedSecondsAfterBoot: 1, sandboxId: idOf("a") };
    const parts = {
      results: [resultOf("a", "empty")],
      multus: [scratchOf("a", "corrupt")],
      flannel: [scratchOf("a", "empty")],
    };
    const found = obstacles(parts, { cure: [ending] });
    expect(found.map(({ kind }) => kind)).toEqual([
      "quarantine-file",
      "quarantine-file",
      "quarantine-file",
      "end-process",
    ]);
  });

  test("a file that the finding names is listed once, at the position of the finding", () => {
    const broken = resultOf("a", "empty");
    const cure: readonly Step[] = [{ kind: "quarantine-file", path: broken.path, health: "empty" }];
    expect(obstacles({ results: [broken] }, { cure })).toEqual(cure);
    const other: readonly Step[] = [{ kind: "quarantine-file", path: "/another", health: "empty" }];
    expect(obstacles({ results: [broken] }, { cure: other })).toHaveLength(2);
  });

  test("intact files are not obstacles", () => {
    const sound = { results: [resultOf("a")], flannel: [scratchOf("a")] };
    expect(obstacles(sound)).toEqual([]);
  });

  describe("a lost cache of thin multus", () => {
    const LOST_CACHE = { conf: MULTUS, pods: ["a"], results: [resultOf("a")] };
    const marker = (dir: string) => [{ kind: "multus-marker", sandboxId: idOf("a"), dir }];

    test("is an obstacle while the pod is known and the network held", () => {
      expect(obstacles(LOST_CACHE)).toEqual(marker("/var/lib/cni/multus"));
    });

    test("is marked in multus' configured directory when that was not read", () => {
      const conf = { multus: { ...MULTUS.multus, cniDir: "/elsewhere" } };
      const { cni } = snapshotOf(LOST_CACHE);
      const sources = {
        cni: { ...cni, conf: snapshotOf({ conf }).cni.conf, multus: absent<never>("no such directory") },
      };
      expect(obstacles(LOST_CACHE, { sources })).toEqual(marker("/elsewhere"));
    });

    test("is no obstacle when the CNI configuration was not read", () => {
      const { cni } = snapshotOf(LOST_CACHE);
      const sources = { cni: { ...cni, conf: absent<never>("no such directory") } };
      expect(obstacles(LOST_CACHE, { sources })).toEqual([]);
    });

    test.each<readonly [string, NodeParts]>([
      ["there is no multus", { conf: {} }],
      ["multus is thick", { conf: THICK_MULTUS }],
      ["the cache exists", { multus: [scratchOf("a")] }],
      ["the sandbox had no network", { records: [recordOf("a", { hasCniResult: false })] }],
      ["the sandbox is in the host network", { records: [recordOf("a", { hostNetwork: true })] }],
      ["the record is unknown", { records: [] }],
      ["nothing of its network is held", { results: [] }],
      ["its pod is gone", { pods: ["b"] }],
    ])("is no obstacle when %s", (_, parts) => {
      expect(obstacles({ ...LOST_CACHE, ...parts })).toEqual([]);
    });
  });
});

describe("pods that need a CSI driver", () => {
  const SOCKET = "/var/lib/kubelet/plugins/csi.example/csi.sock";
  const DIR = "/var/lib/kubelet/plugins/csi.example";
  const REMOVE: Step = { kind: "remove-sandbox", sandboxId: idOf("a") };

  function known(digit: string, dirs: readonly string[]): KnownPod {
    const { pod } = sandboxOf(digit);
    return { namespace: pod.namespace, name: pod.name, uid: pod.uid, csi: { dirs, registers: false } };
  }

  function api(...pods: readonly KnownPod[]): Snapshot["kubernetes"] {
    return { source: "api", pods, holds: { paused: false, node: false, namespaces: [] } };
  }

  function action(digit: string, more: Partial<Finding> = {}): PlannedAction {
    const subject = { type: "sandbox", sandboxId: idOf(digit) };
    const finding = { id: digit, subject, ...more } as Finding;
    return {
      finding,
      rank: "rest",
      steps: [REMOVE],
      reason: { code: "pod-not-on-node", text: "its pod is gone from this node" },
      lane: digit,
    };
  }

  const plugin = action("a", { missingSockets: [SOCKET] });
  const parts = { sandboxes: [sandboxOf("a"), sandboxOf("b")], kubeletStarted: 10 };

  function waits(actions: readonly PlannedAction[], whole = view(parts, { kubernetes: api(known("b", [DIR])) })) {
    return afterPluginSockets(actions, whole).map(({ steps }) => steps);
  }

  test("wait for its socket while its plugin is healed in the same run", () => {
    expect(waits([plugin, action("b")])).toEqual([
      [REMOVE],
      [{ kind: "await-socket", path: SOCKET, optional: true }, REMOVE],
    ]);
  });

  test.each<readonly [string, readonly PlannedAction[], Parameters<typeof waits>[1]]>([
    ["no plugin is healed", [action("b")], undefined],
    [
      "the sandbox mounts another driver's directory",
      [plugin, action("b")],
      view(parts, { kubernetes: api(known("b", ["/x"])) }),
    ],
    ["the mounts are unknown", [plugin, action("b")], view(parts, { kubernetes: { source: "none" } })],
    ["another pod mounts the directory", [plugin, action("b")], view(parts, { kubernetes: api(known("c", [DIR])) })],
    [
      "no kubelet would restart the plugin",
      [plugin, action("b")],
      view({ sandboxes: parts.sandboxes }, { kubernetes: api(known("b", [DIR])) }),
    ],
    ["the subject is not a sandbox", [plugin, action("b", { subject: { type: "node" } })], undefined],
    ["the sandbox is not listed", [plugin, action("c")], undefined],
    ["the plugin is another one", [plugin, action("b", { missingSockets: ["/other.sock"] })], undefined],
  ])("do not wait when %s", (_, actions, whole) => {
    expect(waits(actions, whole)).toEqual(actions.map(({ steps }) => steps));
  });

  test("are identified by the API alone", () => {
    const sandbox = sandboxOf("b");
    expect(csiOf(sandbox, view(parts, { kubernetes: api(known("b", [DIR])) }))).toMatchObject({ dirs: [DIR] });
    const kubelet = { source: "kubelet", pods: [known("b", [DIR])] } as const;
    expect(csiOf(sandbox, view(parts, { kubernetes: kubelet }))).toBeUndefined();
  });
});
