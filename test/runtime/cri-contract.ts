import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PAUSE_IMAGE } from "../../lab/pause-image.ts";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { type PodRef, sandboxName } from "../../src/node/types/ids.ts";
import { type ContainerdClient, openContainerd } from "../../src/runtime/containerd.ts";
import { type CriClient, openCri } from "../../src/runtime/cri.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { Status } from "../../src/runtime/gen/containerd/tasks.ts";
import {
  ContainerEventType,
  ContainerState,
  type PodSandbox,
  PodSandboxState,
} from "../../src/runtime/gen/runtime/v1/cri.ts";
import type { CriBackend, CriManners } from "./cri-backend.ts";

const HANG_GUARD_MS = 600_000;
const CALL = { timeoutMs: 60_000 };
const UNKNOWN_ID = "0".repeat(64);

/** The contract between every runtime and unghost's clients. */
export function criContract(manners: CriManners, open: () => Promise<CriBackend>): void {
  let backend: CriBackend;
  let cri: CriClient;
  let containerd: ContainerdClient;

  beforeAll(async () => {
    backend = await open();
  }, HANG_GUARD_MS);

  afterAll(async () => {
    await backend.close();
  }, HANG_GUARD_MS);

  beforeEach(() => {
    cri = openCri(backend.socket());
    containerd = openContainerd(backend.socket());
  });

  afterEach(async () => {
    for (const sandbox of await cri.listPodSandbox(undefined, CALL)) await cri.removePodSandbox(sandbox.id, CALL);
    cri.close();
    containerd.close();
  }, HANG_GUARD_MS);

  async function run(name: string, spec: { readonly uid?: string; readonly attempt?: number } = {}) {
    const ref = podRef({ name, ...spec });
    const config = sandboxConfig({ name }, ref);
    return { ref, config, id: await cri.runPodSandbox(config, CALL) };
  }

  async function runContainer(pod: Awaited<ReturnType<typeof run>>, name = "main", command: string[] = []) {
    const config = { metadata: { name, attempt: 0 }, image: { image: PAUSE_IMAGE }, labels: { app: name }, command };
    const id = await cri.createContainer(pod.id, config, pod.config, CALL);
    await cri.startContainer(id, CALL);
    return id;
  }

  async function listed(id: string): Promise<PodSandbox | undefined> {
    return (await cri.listPodSandbox({ id }, CALL)).at(0);
  }

  async function stateOf(containerId: string): Promise<ContainerState | undefined> {
    return (await cri.containerStatus(containerId, CALL)).status?.state;
  }

  describe("runtime service", () => {
    test("returns its name and version", async () => {
      const version = await cri.version(CALL);

      expect(version.runtimeName).toMatch(manners.runtimeName);
      expect(version.runtimeVersion).toMatch(manners.runtimeVersion);
      expect(version.runtimeApiVersion).toBe("v1");
    });

    test("names the CNI directories in its verbose status", async () => {
      const { status, info } = await cri.status(CALL);

      expect(status?.conditions).toContainEqual(expect.objectContaining({ type: "RuntimeReady", status: true }));
      expect(JSON.parse(info["config"] ?? "")).toMatchObject({ cni: { confDir: "/etc/cni/net.d" } });
    });

    test("answers the first call after its restart", { timeout: HANG_GUARD_MS }, async () => {
      const pod = await run("survivor");

      await backend.restartRuntime();

      expect((await listed(pod.id))?.state).toBe(PodSandboxState.SANDBOX_READY);
    });
  });

  describe("a sandbox", () => {
    test("is listed as requested", async () => {
      const before = BigInt(Date.now() - 60_000) * 1_000_000n;
      const pod = await run("web");

      const sandbox = await listed(pod.id);

      expect(pod.id).toMatch(/^[0-9a-f]{64}$/);
      expect(sandbox?.metadata).toMatchObject({ name: "web", namespace: "default", uid: pod.ref.uid, attempt: 0 });
      expect(sandbox?.state).toBe(PodSandboxState.SANDBOX_READY);
      expect(sandbox?.labels["io.kubernetes.pod.uid"]).toBe(pod.ref.uid);
      expect(sandbox?.annotations).toMatchObject({ "kubernetes.io/config.source": "api" });
      expect(sandbox?.createdAt).toBeTypeOf("bigint");
      expect(sandbox?.createdAt).toBeGreaterThan(before);
    });

    test("has a verbose status with its address and network namespace", async () => {
      const pod = await run("web");

      const { status, info } = await cri.podSandboxStatus(pod.id, CALL);

      expect(status).toMatchObject({ id: pod.id, state: PodSandboxState.SANDBOX_READY });
      expect(status?.network?.ip).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
      expect(JSON.parse(info["info"] ?? "")).toMatchObject({ pid: expect.any(Number), netNamespaceClosed: false });
    });

    test("is found by id, state and label", async () => {
      const ready = await run("ready");
      const stopped = await run("stopped");
      await cri.stopPodSandbox(stopped.id, CALL);

      const ids = async (filter: Parameters<CriClient["listPodSandbox"]>[0]) =>
        (await cri.listPodSandbox(filter, CALL)).map((sandbox) => sandbox.id);

      expect(await ids({ id: ready.id })).toEqual([ready.id]);
      expect(await ids({ state: { state: PodSandboxState.SANDBOX_READY } })).toEqual([ready.id]);
      expect(await ids({ state: { state: PodSandboxState.SANDBOX_NOTREADY } })).toEqual([stopped.id]);
      expect(await ids({ labelSelector: { "io.kubernetes.pod.uid": stopped.ref.uid } })).toEqual([stopped.id]);
      expect(await ids({ labelSelector: { "io.kubernetes.pod.namespace": "elsewhere" } })).toEqual([]);
    });

    test("is in the short list with its state", async () => {
      const ready = await run("ready");
      const stopped = await run("stopped");
      await cri.stopPodSandbox(stopped.id, CALL);

      const states = new Map((await cri.listSandboxStates(CALL)).map(({ id, state }) => [id, state]));

      expect(states).toEqual(
        new Map([
          [ready.id, PodSandboxState.SANDBOX_READY],
          [stopped.id, PodSandboxState.SANDBOX_NOTREADY],
        ]),
      );
    });

    test("keeps its name through StopPodSandbox and releases it with RemovePodSandbox", async () => {
      const pod = await run("web");

      await expectReserved(pod.ref, pod.id);
      await cri.stopPodSandbox(pod.id, CALL);
      expect((await listed(pod.id))?.state).toBe(PodSandboxState.SANDBOX_NOTREADY);
      await expectReserved(pod.ref, pod.id);
      const next = await run("web", { uid: pod.ref.uid, attempt: 1 });
      expect(next.id).not.toBe(pod.id);
      await cri.removePodSandbox(pod.id, CALL);

      expect(await listed(pod.id)).toBeUndefined();
      const again = await run("web", { uid: pod.ref.uid });
      expect(again.id).not.toBe(pod.id);
    });

    test("that does not exist is removed without an error", async () => {
      await expect(cri.removePodSandbox(UNKNOWN_ID, CALL)).resolves.toBeUndefined();
    });

    test(`that does not exist: StopPodSandbox ${manners.stopOfUnknown}`, async () => {
      const kind = await kindOf(cri.stopPodSandbox(UNKNOWN_ID, CALL));
      expect(kind).toBe(manners.stopOfUnknown === "succeeds" ? undefined : "not-found");
    });

    test("that does not exist has no status", async () => {
      expect(await kindOf(cri.podSandboxStatus(UNKNOWN_ID, CALL))).toBe("not-found");
    });
  });

  describe("a container", () => {
    test("goes from created to running to exited", async () => {
      const pod = await run("web");
      const config = { metadata: { name: "main", attempt: 2 }, image: { image: PAUSE_IMAGE } };

      const id = await cri.createContainer(pod.id, config, pod.config, CALL);
      expect(await stateOf(id)).toBe(ContainerState.CONTAINER_CREATED);
      await cri.startContainer(id, CALL);
      expect(await stateOf(id)).toBe(ContainerState.CONTAINER_RUNNING);
      await cri.stopContainer(id, 0, CALL);
      const { status } = await cri.containerStatus(id, CALL);

      expect(status).toMatchObject({ state: ContainerState.CONTAINER_EXITED, exitCode: 137, reason: "Error" });
      expect(status?.metadata).toMatchObject({ name: "main", attempt: 2 });
      expect(status?.finishedAt).toBeGreaterThanOrEqual(status?.startedAt ?? 0n);
      await cri.removeContainer(id, CALL);
      expect(await kindOf(cri.containerStatus(id, CALL))).toBe("not-found");
    });

    test("is found by sandbox, state and label", async () => {
      const one = await run("one");
      const other = await run("other");
      const running = await runContainer(one, "running");
      const exited = await runContainer(other, "exited");
      await cri.stopContainer(exited, 0, CALL);

      const ids = async (filter: Parameters<CriClient["listContainers"]>[0]) =>
        (await cri.listContainers(filter, CALL)).map((container) => container.id);

      expect((await ids(undefined)).sort()).toEqual([running, exited].sort());
      expect(await ids({ podSandboxId: one.id })).toEqual([running]);
      expect(await ids({ state: { state: ContainerState.CONTAINER_EXITED } })).toEqual([exited]);
      expect(await ids({ labelSelector: { app: "running" } })).toEqual([running]);
    });

    test("holds its own name, and is removed with its sandbox", async () => {
      const pod = await run("web");
      const id = await runContainer(pod);

      const twin = await runContainer(pod).catch((error: unknown) => error);
      expect(twin).toMatchObject({ kind: "refused" });
      const name = `main_web_default_${pod.ref.uid}_0`;
      expect((twin as RuntimeError).text).toMatch(/^failed to reserve container name /);
      expect((twin as RuntimeError).text).toContain(`name "${name}" is reserved for "${id}"`);
      await cri.removePodSandbox(pod.id, CALL);

      expect(await cri.listContainers({ podSandboxId: pod.id }, CALL)).toEqual([]);
      expect(await kindOf(cri.containerStatus(id, CALL))).toBe("not-found");
    });

    test("that is slow to stop times out, whichever clock is first", async () => {
      const id = await runContainer(await run("stubborn"), "main", ["sh", "-c", "trap '' TERM; exec sleep 1000000000"]);
      const asBefore = backend.slowStops();

      const kinds = await Promise.all(
        [200, 350, 500].map((timeoutMs) => kindOf(cri.stopContainer(id, 30, { timeoutMs }))),
      );
      asBefore();

      expect(kinds).toEqual(["deadline", "deadline", "deadline"]);
    });
  });

  test(manners.containerEvents ? "events tell what happens" : "has no event stream, and says so", async () => {
    const seen: string[] = [];
    const controller = new AbortController();
    const watching = (async () => {
      for await (const event of cri.containerEvents({ ...CALL, signal: controller.signal })) {
        if (event.containerEventType === ContainerEventType.CONTAINER_DELETED_EVENT) seen.push(event.containerId);
      }
    })();
    const ended = kindOf(watching);
    if (!manners.containerEvents) return expect(await ended).toBe("unsupported");

    const deleted = await until("a deletion shows up in the events", CALL.timeoutMs, async () => {
      const pod = await run("short");
      await cri.removePodSandbox(pod.id, CALL);
      return seen.includes(pod.id) ? pod.id : undefined;
    });
    controller.abort();

    expect(seen).toContain(deleted);
    expect(await ended).toBe("cancelled");
  });

  describe("containerd's own records", () => {
    test("match the CRI lists, and outlive their tasks", async () => {
      const pod = await run("web");
      const container = await runContainer(pod);

      const records = await containerd.listContainers(CALL);
      const kinds = new Map(records.map((record) => [record.id, record.labels["io.cri-containerd.kind"]]));
      expect(kinds.get(pod.id)).toBe("sandbox");
      expect(kinds.get(container)).toBe("container");
      expect(await runningTasks()).toEqual([pod.id, container].sort());
      expect(await containerd.findTask(pod.id, CALL)).toMatchObject({ status: Status.RUNNING });
      const metadata = records.find((record) => record.id === pod.id)?.extensions["io.cri-containerd.sandbox.metadata"];
      expect(JSON.parse(new TextDecoder().decode(metadata?.value))).toMatchObject({
        Metadata: { ID: pod.id, Name: sandboxName(pod.ref), NetNSPath: expect.stringContaining("/netns/cni-") },
      });
      await cri.stopPodSandbox(pod.id, CALL);

      expect(await runningTasks()).toEqual([]);
      expect(await containerd.findTask(pod.id, CALL)).toBeUndefined();
      expect(await containerd.findTask(UNKNOWN_ID, CALL)).toBeUndefined();
      expect((await containerd.findContainers([pod.id, UNKNOWN_ID], CALL)).map(({ id }) => id)).toEqual([pod.id]);
      await cri.removePodSandbox(pod.id, CALL);
      expect(await containerd.findContainers([pod.id], CALL)).toEqual([]);
    });

    test(manners.sandboxStore ? "include a store record and a lease" : "know no sandbox store", async () => {
      const pod = await run("web");

      const stored = (await containerd.listSandboxes(CALL)).map((sandbox) => sandbox.sandboxId);
      const leases = (await containerd.listLeases(CALL)).map((lease) => lease.id);

      expect(stored).toEqual(manners.sandboxStore ? [pod.id] : []);
      expect(leases.includes(pod.id)).toBe(manners.sandboxStore);
    });
  });

  test("a power cut leaves records and names, and no running process", { timeout: HANG_GUARD_MS }, async () => {
    const pod = await run("web");
    const running = await runContainer(pod, "running");
    const orderly = await runContainer(pod, "orderly");
    await cri.stopContainer(orderly, 0, CALL);
    cri.close();
    containerd.close();

    await backend.powerCut();
    cri = openCri(backend.socket());
    containerd = openContainerd(backend.socket());

    expect((await listed(pod.id))?.state).toBe(PodSandboxState.SANDBOX_NOTREADY);
    expect((await cri.containerStatus(running, CALL)).status).toMatchObject({
      state: ContainerState.CONTAINER_EXITED,
      exitCode: 255,
      reason: "Unknown",
    });
    expect((await cri.containerStatus(orderly, CALL)).status).toMatchObject({ exitCode: 137, reason: "Error" });
    expect(await runningTasks()).toEqual([]);
    await expectReserved(pod.ref, pod.id);
    await cri.removePodSandbox(pod.id, CALL);
    await expect(run("web", { uid: pod.ref.uid })).resolves.toMatchObject({ ref: pod.ref });
  });

  async function expectReserved(ref: PodRef, holder: string): Promise<void> {
    const name = sandboxName(ref);
    await expect(cri.runPodSandbox(sandboxConfig({ name: ref.name }, ref), CALL)).rejects.toMatchObject({
      kind: "refused",
      text: `failed to reserve sandbox name "${name}": name "${name}" is reserved for "${holder}"`,
    });
  }

  async function runningTasks(): Promise<readonly string[]> {
    const tasks = await containerd.listTasks(CALL);
    return tasks
      .filter((task) => task.status === Status.RUNNING)
      .map((task) => task.id)
      .sort();
  }
}

/** The kind of a call's error; undefined on success. */
async function kindOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    if (error instanceof RuntimeError) return error.kind;
    throw error;
  }
}
