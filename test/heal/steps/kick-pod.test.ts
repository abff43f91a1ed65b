import { afterEach, describe, expect, test } from "vitest";
import { restartPod } from "../../../src/heal/steps/pods.ts";
import { failed } from "../../../src/host/source.ts";
import type { Api } from "../../../src/kube/api.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { sandboxId } from "../../../src/node/types/ids.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import {
  Container,
  ContainerState,
  ContainerStatusResponse,
  PodSandboxState,
} from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { fakeApi, type RecordingApi, recordingApi } from "../../kube/fake-api.ts";
import { podObject } from "../../kube/stub-server.ts";
import { pluginFor } from "../../support/snapshot-builder.ts";
import { criSandbox, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const STEP = { kind: "kick-pod", namespace: "default", name: "attacher", uid: "uid-1", node: "n1" } as const;
const CONTROLLER = [{ kind: "ReplicaSet", controller: true }];
const HOLDER = sandboxId("a".repeat(64));
const OTHER = "b".repeat(64);
const IGNORE = { "unghost.dev/ignore": "true" };

interface Parts {
  readonly uid?: string;
  readonly node?: string;
  readonly owners?: readonly object[];
  readonly status?: object;
  readonly marks?: Readonly<Record<string, string>>;
  readonly namespaceMarks?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
  readonly isGone?: boolean;
  readonly onDelete?: Error;
  readonly afterDelete?: "gone" | "stays" | "made again";
}

function cluster(parts: Parts = {}): RecordingApi {
  const { uid = "uid-1", node = "n1", owners = CONTROLLER, status, marks = {}, onDelete } = parts;
  let isGone = parts.isGone ?? false;
  let uidNow = uid;
  const object = podObject({ name: STEP.name, uid, node, annotations: marks });
  const deletion = parts.deletionTimestamp === undefined ? {} : { deletionTimestamp: parts.deletionTimestamp };
  const pod = () => ({
    ...object,
    metadata: { ...object.metadata, uid: uidNow, ownerReferences: owners, ...deletion },
    ...(status === undefined ? {} : { status }),
  });
  return recordingApi(
    (path) => {
      if (!path.includes("/pods/"))
        return Promise.resolve({ metadata: { name: "default", labels: parts.namespaceMarks ?? {} } });
      return isGone ? Promise.reject(new KubeError("not-found", "not there")) : Promise.resolve(pod());
    },
    () => {
      if (onDelete !== undefined) throw onDelete;
      isGone = (parts.afterDelete ?? "gone") === "gone";
      if (parts.afterDelete === "made again") uidNow = "uid-2";
    },
  );
}

let fixture: HealFixture | undefined;
afterEach(() => fixture?.remove());

/** The runtime's and the process table's state of the sandbox that holds a pod's name. */
interface Runtime {
  readonly isListed?: boolean;
  readonly isReady?: boolean;
  readonly isNotReady?: boolean;
  readonly hasOtherPlugin?: boolean;
  readonly hasPlugin?: boolean;
  readonly isUnread?: boolean;
  readonly containers?: readonly RuntimeContainer[];
}

interface RuntimeContainer {
  readonly name: string | undefined;
  readonly createdAt: bigint;
  readonly state: ContainerState;
  readonly end?: { readonly exitCode: number; readonly reason: string } | "gone" | Error;
}

const { CONTAINER_CREATED, CONTAINER_EXITED, CONTAINER_RUNNING } = ContainerState;
const ERROR = { exitCode: 1, reason: "Error" };
const CRASHED: RuntimeContainer = { name: "main", createdAt: 2n, state: CONTAINER_EXITED, end: ERROR };

function criOf(containers: readonly RuntimeContainer[]) {
  const all = containers.map(({ name, createdAt, state }, index) =>
    Container.fromPartial({
      id: String(index),
      ...(name === undefined ? {} : { metadata: { name } }),
      createdAt,
      state,
    }),
  );
  return {
    listContainers: (filter: unknown) => {
      expect(filter).toEqual({ labelSelector: { "io.kubernetes.pod.uid": "uid-1" } });
      return Promise.resolve(all);
    },
    containerStatus: (id: string) => {
      const end = containers[Number(id)]?.end;
      if (end instanceof Error) return Promise.reject(end);
      return end === "gone"
        ? Promise.reject(new RuntimeError("not-found", "ContainerStatus", "", ""))
        : Promise.resolve(ContainerStatusResponse.fromPartial({ status: end ?? {} }));
    },
  };
}

async function kick(api: Api | undefined, step: Parameters<typeof restartPod>[0] = STEP, runtime: Runtime = {}) {
  fixture = await makeHealFixture();
  const listed = runtime.isListed ? [criSandbox(HOLDER)] : [];
  const ofPod = [
    ...(runtime.isReady ? [criSandbox(OTHER, { state: PodSandboxState.SANDBOX_READY })] : []),
    ...(runtime.isNotReady ? [criSandbox(OTHER)] : []),
  ];
  const plugins = [
    ...(runtime.hasPlugin ? [{ ...pluginFor("a", "ADD", 600), sandboxId: HOLDER }] : []),
    ...(runtime.hasOtherPlugin ? [pluginFor("b", "ADD", 600)] : []),
  ];
  const tools = fakeTools(fixture, {
    sandboxes: listed,
    processes: runtime.isUnread ? failed("no /proc") : { plugins },
    cri: {
      listPodSandbox: (filter) => {
        expect(filter).toEqual({ labelSelector: { "io.kubernetes.pod.uid": "uid-1" } });
        return Promise.resolve(ofPod);
      },
      ...criOf(runtime.containers ?? [CRASHED]),
    },
    tools: api === undefined ? {} : { cluster: () => Promise.resolve(api) },
  });
  return await journalOf(fixture, restartPod(step, FINDING, tools));
}

describe("restart pod", () => {
  test("deletes the pod with its uid as precondition, after the journal entry", async () => {
    const api = cluster();

    const { result, history } = await kick(api);

    expect(result).toMatchObject({ kind: "done", journalId: history[0]?.id });
    expect(api.deleted).toEqual([
      "/api/v1/namespaces/default/pods/attacher",
      expect.objectContaining({ preconditions: { uid: "uid-1" } }),
    ]);
    expect(history).toMatchObject([
      { action: { kind: "kick-pod", name: "attacher", uid: "uid-1" }, outcome: "healed" },
    ]);
  });

  test.each<readonly [string, Parts]>([
    ["is gone", { isGone: true }],
    ["was created again", { uid: "uid-2" }],
    ["is being deleted", { deletionTimestamp: "2026-03-01T12:00:00Z" }],
  ])("needs nothing when the pod %s", async (_what, parts) => {
    const api = cluster(parts);

    const { result, history } = await kick(api);

    expect([result, api.deleted, history, api.closed]).toEqual([{ kind: "unneeded" }, [], [], 1]);
  });

  const LOST = { ...CRASHED, end: { exitCode: 255, reason: "Unknown" } };
  const RUNS = { ...CRASHED, createdAt: 3n, state: CONTAINER_RUNNING };
  test.each<readonly [string, readonly RuntimeContainer[], "done" | "unneeded"]>([
    ["it ended with an error", [CRASHED], "done"],
    ["one of its containers ended with an error", [{ ...RUNS, name: "other" }, CRASHED], "done"],
    ["it was lost with the node, started again and crashed", [{ ...LOST, createdAt: 1n }, CRASHED], "done"],
    ["it is running again", [CRASHED, RUNS], "unneeded"],
    ["it is running again, and the newest container is listed first", [RUNS, CRASHED], "unneeded"],
    ["a container without a name ended with an error", [{ ...CRASHED, name: undefined }], "done"],
    ["it is being restarted", [CRASHED, { ...RUNS, state: CONTAINER_CREATED }], "unneeded"],
    ["it was lost with the node and not restarted yet", [LOST], "unneeded"],
    [
      "an init container succeeded",
      [
        { ...CRASHED, end: { exitCode: 0, reason: "Completed" } },
        { ...RUNS, name: "m" },
      ],
      "unneeded",
    ],
    ["its container is gone by now", [{ ...CRASHED, end: "gone" }], "unneeded"],
    ["it has no container, and kubelet reports it as running", [], "unneeded"],
  ])("trusts the runtime, not the API: %s", async (_what, containers, kind) => {
    const api = cluster();

    const { result } = await kick(api, STEP, { containers });

    expect([result.kind, api.deleted.length > 0]).toEqual([kind, kind === "done"]);
  });

  test("succeeds when the controller created the pod again at once", async () => {
    expect((await kick(cluster({ afterDelete: "made again" }))).result.kind).toBe("done");
  });

  test("deletes nothing when the runtime does not report how a container ended", async () => {
    const api = cluster();
    const end = new RuntimeError("deadline", "ContainerStatus", "no answer", "");

    await expect(kick(api, STEP, { containers: [{ ...CRASHED, end }] })).rejects.toThrow("did not answer in time");

    expect(api.deleted).toEqual([]);
  });

  test("uses kubelet's report when the runtime has no container of the pod", async () => {
    const status = { containerStatuses: [{ restartCount: 9, state: { waiting: { reason: "CrashLoopBackOff" } } }] };
    const api = cluster({ status });

    expect((await kick(api, STEP, { containers: [] })).result.kind).toBe("done");
  });

  const BACK_OFF = { containerStatuses: [{ restartCount: 9, state: { waiting: { reason: "CrashLoopBackOff" } } }] };
  const ENDED = { ...CRASHED, end: { exitCode: 0, reason: "Completed" } };
  test.each<readonly [string, object | undefined, readonly RuntimeContainer[], "done" | "unneeded"]>([
    ["waits in kubelet's back-off", BACK_OFF, [ENDED], "done"],
    ["has finished", undefined, [ENDED], "unneeded"],
    ["runs again", BACK_OFF, [ENDED, RUNS], "unneeded"],
  ])("a pod whose container ended without an error and that %s", async (_what, status, containers, kind) => {
    const parts = status === undefined ? {} : { status };

    expect((await kick(cluster(parts), STEP, { containers })).result.kind).toBe(kind);
  });

  test.each<readonly [string, object, readonly RuntimeContainer[], "done" | "unneeded"]>([
    ["has not started", { phase: "Pending" }, [], "done"],
    ["has started by now", { phase: "Pending" }, [RUNS], "unneeded"],
    ["runs", { phase: "Running" }, [], "unneeded"],
  ])("a pod that waits for its volumes and %s", async (_what, status, containers, kind) => {
    const step = { ...STEP, waitsForVolumes: true } as const;

    expect((await kick(cluster({ status }), step, { containers })).result.kind).toBe(kind);
  });

  test("waits for an API server that does not answer for a moment", async () => {
    const api = cluster();
    let failures = 3;
    const starting: Api = {
      ...api,
      get: async (...asked) => {
        failures -= 1;
        if (failures >= 0) throw new KubeError("unreachable", "connection refused");
        return await api.get(...asked);
      },
    };

    expect((await kick(starting)).result.kind).toBe("done");
    expect(api.deleted).not.toEqual([]);
  });

  test.each<readonly [string, Parts, string]>([
    ["has no controller", { owners: [] }, "pod-without-controller"],
    ["has an owner that is no controller", { owners: [{ kind: "Node" }] }, "pod-without-controller"],
    ["runs on another node", { node: "n2" }, "pod-elsewhere"],
    ["is opted out", { marks: IGNORE }, "pod-opted-out"],
    ["is in a namespace that is opted out", { namespaceMarks: IGNORE }, "namespace-opted-out"],
  ])("refuses when the pod %s", async (_what, parts, code) => {
    const api = cluster(parts);

    const { result, history } = await kick(api);

    expect([result, api.deleted, history]).toMatchObject([{ kind: "refused", code }, [], []]);
  });

  const unread = fakeApi({ get: () => Promise.reject(new KubeError("unreachable", "no answer")) });

  test.each<readonly [string, Api | undefined, "refused" | "failed", string]>([
    ["there is no API", undefined, "refused", "api-missing"],
    ["the API does not answer", unread, "refused", "api-unread"],
    [
      "it is created again at that moment",
      cluster({ onDelete: new KubeError("conflict", "uid") }),
      "refused",
      "pod-recreated",
    ],
    ["the deletion is forbidden", cluster({ onDelete: new KubeError("forbidden", "no") }), "failed", "api-error"],
    ["the API still has the old pod afterwards", cluster({ afterDelete: "stays" }), "failed", "pod-still-there"],
  ])("reports an error when %s", async (_what, api, kind, code) => {
    expect((await kick(api)).result).toMatchObject({ kind, code });
  });
});

test.each<readonly [string, () => Api]>([
  ["while it reads", () => fakeApi({ get: () => Promise.reject(new TypeError("a mistake")) })],
  ["while it deletes", () => cluster({ onDelete: new TypeError("a mistake") })],
])("rethrows an internal error %s", async (_what, api) => {
  await expect(kick(api())).rejects.toThrow("a mistake");
});

describe("re-create a pod whose name is held", () => {
  const HELD = { ...STEP, holder: HOLDER };

  test("deletes the pod while the holder is being created and nothing explains the delay", async () => {
    const api = cluster();

    const { result } = await kick(api, HELD);

    expect(result.kind).toBe("done");
    expect(api.deleted).toHaveLength(2);
  });

  test.each<readonly [string, Runtime]>([
    ["a sandbox of the pod that is not Ready", { isNotReady: true }],
    ["a plugin that works on another sandbox", { hasOtherPlugin: true }],
  ])("deletes the pod despite %s", async (_what, runtime) => {
    expect((await kick(cluster(), HELD, runtime)).result.kind).toBe("done");
  });

  test.each<readonly [string, Runtime]>([
    ["the holder is listed now", { isListed: true }],
    ["the pod has a sandbox now", { isReady: true }],
    ["a plugin's process explains it", { hasPlugin: true }],
    ["the process table cannot be read", { isUnread: true }],
  ])("touches nothing when %s", async (_what, runtime) => {
    const api = cluster();

    expect([(await kick(api, HELD, runtime)).result.kind, api.deleted]).toEqual(["unneeded", []]);
  });

  test.each<readonly [string, Parts]>([
    ["has no controller", { owners: [] }],
    ["is opted out", { marks: IGNORE }],
    ["is in a namespace that is opted out", { namespaceMarks: IGNORE }],
  ])("refuses when the pod %s", async (_what, parts) => {
    const api = cluster(parts);

    expect([(await kick(api, HELD)).result.kind, api.deleted]).toEqual(["refused", []]);
  });
});
