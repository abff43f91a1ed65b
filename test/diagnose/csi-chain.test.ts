import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { read } from "../../src/host/source.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { CsiSocket, KnownPod, Kubernetes, PodEvent, UnattachedVolume } from "../../src/node/types/snapshot.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { buildReport, withHealing } from "../../src/report/build.ts";
import { renderPlan } from "../../src/report/plan.ts";
import { doneInWords } from "../../src/report/step-words.ts";
import {
  AT_ONCE,
  ago,
  containerOf,
  idOf,
  LOST,
  recordOf,
  resultOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const DIR = "/var/lib/kubelet/plugins/d.example";
const DEAD: CsiSocket = { driver: "d.example", dir: DIR, path: `${DIR}/csi.sock`, state: "dead", registered: true };
const PLUGIN: KnownPod = { ...pod("pod-a", "a"), controller: "DaemonSet", csi: { dirs: [DIR], registers: true } };
const SIDECAR: KnownPod = {
  ...pod("sidecar", "s"),
  controller: "ReplicaSet",
  crash: { down: true },
  csi: { dirs: [DIR], registers: false },
};
const MOUNT: PodEvent = {
  namespace: "default",
  pod: "db",
  reason: "FailedMount",
  message: "driver name d.example not found in the list of registered CSI drivers",
  count: 3,
};
const UNATTACHED: UnattachedVolume = {
  name: "csi-1",
  attacher: "d.example",
  node: "node",
  attached: false,
  createdAt: ago(3000),
  finalizers: [],
  claim: { namespace: "default", name: "data" },
  inUse: false,
  holders: [],
  unknown: [],
};

function pod(name: string, uid: string): KnownPod {
  return { namespace: "default", name, uid: podUid(uid) };
}

interface Parts {
  readonly plugin?: KnownPod;
  readonly pods?: readonly KnownPod[];
  readonly socket?: Partial<CsiSocket>;
  readonly events?: readonly PodEvent[];
  readonly unattached?: readonly UnattachedVolume[];
  readonly kubelet?: boolean;
  /** The sidecar's state in the runtime. */
  readonly sidecar?: Pick<NonNullable<Parameters<typeof snapshotOf>[0]>, "sandboxes" | "containers">;
}

function diagnosed(given: Parts = {}) {
  const {
    pods = [SIDECAR],
    socket = {},
    events = [],
    unattached = [],
    kubelet = true,
    sidecar = {},
    plugin = PLUGIN,
  } = given;
  const kubernetes: Kubernetes = {
    source: "api",
    pods: [plugin, ...pods],
    holds: { paused: false, node: false, namespaces: [] },
    nodeName: "node",
    events,
    unattached,
  };
  const parts = {
    sandboxes: [sandboxOf("a"), ...(sidecar.sandboxes ?? [])],
    records: [recordOf("a")],
    containers: [containerOf("a", { exit: LOST }), ...(sidecar.containers ?? [])],
    results: [resultOf("a", "empty")],
    ...(kubelet ? { kubeletStarted: 10 } : {}),
  };
  return diagnose(snapshotOf(parts, { kubernetes, csi: read([{ ...DEAD, ...socket }]) }), AT_ONCE);
}

describe("a ghost on a CSI node plugin", () => {
  test("is one finding with the whole chain, whose links are not findings", () => {
    const db = { ...pod("db", "d"), phase: "Pending", claims: ["data"] };
    const { findings } = diagnosed({ pods: [SIDECAR, db], events: [MOUNT], unattached: [UNATTACHED] });

    expect(findings.map(({ id }) => id)).toEqual([`libcni-result-cache-corrupt/${idOf("a")}`]);
    expect(findings[0]).toMatchObject({ severity: "critical", summary: expect.stringContaining("1 crash-looping") });
    expect(findings[0]?.blocks.slice(-3)).toEqual([
      "CSI driver d.example: its node plugin default/pod-a cannot start",
      "pod default/sidecar: crash-loops without the driver's socket",
      "pod default/db: waits for a volume of the driver",
    ]);
  });

  test.each<readonly [string, Partial<KnownPod>, boolean]>([
    ["its own volumes", { ownVolumes: true, controller: "ReplicaSet", phase: "Pending" }, true],
    ["its own volumes, and no controller", { ownVolumes: true, phase: "Pending" }, false],
    ["its own volumes, and it had started", { ownVolumes: true, controller: "ReplicaSet", phase: "Running" }, false],
    ["a claim", { controller: "ReplicaSet", phase: "Pending", claims: ["data"] }, false],
  ])("a pod that waits for %s is restarted, if that ends its wait: %o", (_what, parts, isRestarted) => {
    const db: KnownPod = { ...pod("db", "d"), ...parts };
    const [finding] = diagnosed({ pods: [db], events: [MOUNT] }).findings;
    const restart = { kind: "kick-pod", name: "db", waitsForVolumes: true };

    expect(finding?.followUps).toMatchObject(isRestarted ? [{ kind: "await-socket" }, restart] : []);
    expect(finding?.aftermath?.text).toEqual(isRestarted ? undefined : expect.stringContaining("default/db"));
  });

  test.each<readonly [string, Parts]>([
    ["its socket is served", { socket: { state: "listening" } }],
    ["the dead socket is another driver's", { socket: { dir: "/var/lib/kubelet/plugins/other" } }],
  ])("reports no chain when %s", (_what, parts) => {
    expect(diagnosed(parts).findings[0]?.followUps).toBeUndefined();
  });

  test.each<readonly [string, string, boolean, boolean]>([
    ["a registrar among its containers", "node-driver-registrar", true, true],
    ["no registrar", "main", true, false],
    ["a socket that an uninstalled driver left", "node-driver-registrar", false, false],
  ])("is identified without an API by %s", (_what, name, registered, isFound) => {
    const parts = {
      sandboxes: [sandboxOf("a")],
      records: [recordOf("a")],
      containers: [containerOf("a", { exit: LOST, name })],
      results: [resultOf("a", "empty")],
    };
    const { findings } = diagnose(snapshotOf(parts, { csi: read([{ ...DEAD, registered }]) }), AT_ONCE);

    expect(findings.map(({ followUps }) => followUps)).toEqual([isFound ? [] : undefined]);
  });

  const SELF = { ...PLUGIN, csi: { dirs: [DIR], registers: false } };
  test.each<readonly [string, KnownPod, readonly KnownPod[], boolean, boolean]>([
    ["its driver is registered with kubelet", SELF, [SIDECAR], true, true],
    ["no driver of the directory is registered", SELF, [SIDECAR], false, false],
    ["another pod registers it", SELF, [{ ...PLUGIN, ...pod("p", "p") }], true, false],
    ["two DaemonSets use the directory", SELF, [{ ...SELF, ...pod("p", "p") }], true, false],
    ["it is not a DaemonSet pod", { ...SELF, controller: "ReplicaSet" }, [], true, false],
  ])("identified only by its directory, when %s", (_what, plugin, pods, registered, isFound) => {
    const { findings } = diagnosed({ plugin, pods, socket: { registered } });

    expect(findings.some(({ missingSockets }) => missingSockets !== undefined)).toBe(isFound);
  });

  test("names the driver, not its directory, in what waits for it", () => {
    const dir = "/var/lib/kubelet/plugins/csi-d";
    const plugin = { ...PLUGIN, csi: { dirs: [dir], registers: true } };
    const db = { ...pod("db", "d"), phase: "Pending", claims: ["data"] };
    const socket = { dir, path: `${dir}/csi.sock` };
    const { findings } = diagnosed({ plugin, pods: [db], socket, events: [MOUNT], unattached: [UNATTACHED] });

    expect(findings).toHaveLength(1);
    expect(findings[0]?.blocks).toContain("pod default/db: waits for a volume of the driver");
  });

  test("a stuck attachment of another driver stays a separate finding", () => {
    const { findings } = diagnosed({ pods: [], unattached: [{ ...UNATTACHED, attacher: "other" }] });

    expect(findings.map(({ subject }) => subject.type).toSorted()).toEqual(["sandbox", "volume-attachment"]);
  });
});

describe("ghosts of other pods of the driver", () => {
  const ATTACHER = { ...SIDECAR, ...pod("csi-attacher-0", "b") };
  const parts = {
    sandboxes: [
      { ...sandboxOf("b"), pod: { namespace: "default", name: "csi-attacher-0", uid: podUid("b"), attempt: 0 } },
      sandboxOf("a"),
    ],
    records: [recordOf("a"), recordOf("b")],
    containers: [containerOf("a", { exit: LOST }), containerOf("b", { exit: LOST })],
    results: [resultOf("a", "empty"), resultOf("b", "empty")],
  } as const;
  const planned = (pods: readonly KnownPod[], kubelet = true) => {
    const kubernetes: Kubernetes = { source: "api", pods, holds: { paused: false, node: false, namespaces: [] } };
    const facts = snapshotOf(kubelet ? { ...parts, kubeletStarted: 10 } : parts, { kubernetes, csi: read([DEAD]) });
    return planHealing(diagnose(facts, AT_ONCE), { ...AT_ONCE, allDead: false, cap: 10 }).actions;
  };

  test("are healed after the plugin that serves the socket, whatever their names, and wait for it", () => {
    const actions = planned([PLUGIN, ATTACHER]);

    expect(actions.map(({ finding, rank }) => ["pod" in finding.subject && finding.subject.pod?.name, rank])).toEqual([
      ["pod-a", "csi-node-plugin"],
      ["csi-attacher-0", "rest"],
    ]);
    expect(actions.map(({ steps }) => steps[0]?.kind)).toEqual(["quarantine-file", "await-socket"]);
    expect(actions[1]?.steps[0]).toEqual({ kind: "await-socket", path: DEAD.path, optional: true });
  });

  test("do not wait without a kubelet, nor for another driver's socket", () => {
    const other = { ...ATTACHER, csi: { dirs: ["/var/lib/kubelet/plugins/other"], registers: false } };

    for (const actions of [planned([PLUGIN, ATTACHER], false), planned([PLUGIN, other])])
      expect(actions.flatMap(({ steps }) => steps.map(({ kind }) => kind))).not.toContain("await-socket");
  });
});

describe("the plan of a chain", () => {
  const db = { ...pod("db", "d"), phase: "Pending" };
  const plan = planHealing(diagnosed({ pods: [SIDECAR, db], events: [MOUNT] }), {
    ...AT_ONCE,
    allDead: false,
    cap: 10,
  });

  test("lists the pods that it restarts, and when the volumes are mounted", () => {
    const text = renderPlan(
      plan,
      { view: diagnosed().view, problems: [], where: "node" },
      { colour: false, columns: 500, verbose: false },
    );

    expect(text).toContain("restart default/sidecar, which crashed without it");
    expect(text).toContain("kubelet mounts the volumes of default/db at its next retry, up to 2m2s later");
  });

  test("is in the report", () => {
    const [action] = plan.actions;
    if (action === undefined) throw new Error("nothing planned");
    const seen = diagnosed();
    const report = buildReport(seen.view.snapshot, seen);

    const [done] = withHealing(report, [{ action, outcome: "healed", seconds: 1 }]).actions ?? [];

    expect(done).toMatchObject({
      restarts: [{ namespace: "default", name: "sidecar", uid: "s" }],
      expect: expect.stringMatching(/default\/db at its next retry, up to 2m2s later: by \d{4}-.*Z$/),
    });
    expect(doneInWords(action)).toMatch(
      /^moved its broken or stale cache file to quarantine, .*restarted default\/sidecar$/,
    );

    // It started on its own before its turn.
    const undone = action.followUps ?? [];
    const [spared] = withHealing(report, [{ action, outcome: "healed", undone, seconds: 1 }]).actions ?? [];
    expect(spared).not.toHaveProperty("restarts");
    expect(doneInWords(action, undone)).not.toContain("restarted");
  });
});

describe("follow-ups", () => {
  const { controller: _controller, ...bare } = SIDECAR;
  const { crash: _crash, ...WELL } = SIDECAR;
  const crashed = (down: boolean, seconds: number): KnownPod => ({ ...WELL, crash: { down, endedAt: ago(seconds) } });

  test.each<readonly [string, KnownPod, boolean]>([
    ["a crash-looping pod with a controller", SIDECAR, true],
    ["a bare pod", bare, false],
    ["a pod with unghost.dev/ignore", { ...SIDECAR, ignored: true }, false],
    ["a pod that is being deleted", { ...SIDECAR, terminating: true }, false],
    ["a pod known only from kubelet", { ...WELL, waiting: ["CrashLoopBackOff"] }, true],
    ["a pod that ended with an error and was restarted a moment ago", crashed(false, 20), true],
    ["a pod that ended with an error and runs since", crashed(false, 3600), false],
    ["a pod that never crashed", WELL, false],
    ["a pod that crashes for another reason", { ...SIDECAR, csi: { dirs: [], registers: false } }, false],
    ["a mirror pod of a static pod", { ...SIDECAR, objectUid: "mirror" }, false],
  ])("%s is restarted: %o", (_what, one, isKicked) => {
    const steps = diagnosed({ pods: [one] }).findings[0]?.followUps;

    const kick = { kind: "kick-pod", namespace: "default", name: "sidecar", uid: "s", node: "node" };
    expect(steps).toEqual(isKicked ? [{ kind: "await-socket", path: DEAD.path }, kick] : []);
  });

  const DOWN = { ...sandboxOf("s"), pod: { namespace: "default", name: "sidecar", uid: podUid("s"), attempt: 0 } };
  const READY = { ...DOWN, state: "ready" } as const;
  const ran = (state: "running" | "exited") => containerOf("s", { sandboxId: DOWN.id, state });

  test.each<readonly [string, KnownPod, NonNullable<Parts["sidecar"]>, boolean]>([
    ["died with the node", WELL, { sandboxes: [DOWN] }, true],
    ["has a new sandbox without a running container", WELL, { sandboxes: [READY], containers: [ran("exited")] }, true],
    ["runs", WELL, { sandboxes: [READY], containers: [ran("running")] }, false],
    ["is about to start", WELL, { sandboxes: [READY] }, false],
    ["is a Job's pod", { ...WELL, controller: "Job" }, { sandboxes: [DOWN] }, false],
  ])("a pod that is up in the API and that %s is restarted if it crashes: %o", (_what, one, sidecar, isPlanned) => {
    const [finding] = diagnosed({ pods: [one], sidecar }).findings.filter(({ followUps }) => followUps !== undefined);

    const kicks = finding?.followUps?.filter(({ kind }) => kind === "kick-pod");
    expect(kicks).toMatchObject(isPlanned ? [{ uid: "s", mayCrash: true }] : []);
    expect(finding?.blocks.some((block) => block.startsWith("pod default/sidecar: is down"))).toBe(isPlanned);
  });

  test("restarts at most ten pods", () => {
    const many = Array.from({ length: 30 }, (_, index) => ({ ...SIDECAR, ...pod(`s-${index}`, `s-${index}`) }));

    expect(diagnosed({ pods: many }).findings[0]?.followUps).toHaveLength(11);
  });

  test.each<readonly [string, boolean, boolean, number]>([
    ["with a kubelet", true, false, 2],
    ["--no-kick", true, true, 0],
    ["without a kubelet that would restart the plugin", false, false, 0],
  ])("are in the plan: %s", (_what, kubelet, noKick, count) => {
    const { actions } = planHealing(diagnosed({ kubelet }), { ...AT_ONCE, allDead: false, cap: 10, noKick });

    expect(actions.map(({ rank, followUps = [] }) => [rank, followUps.length])).toEqual([["csi-node-plugin", count]]);
  });
});
