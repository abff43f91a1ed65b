import { copyFileSync, cpSync, readFileSync, statSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { containerdCall, idMessage } from "../../lab/containerd-raw.ts";
import { duplicateRecord } from "../../lab/faults/duplicate-record.ts";
import { unknownId } from "../../lab/faults/host-local.ts";
import { interruptedRun } from "../../lab/faults/interrupted-run.ts";
import { recordWithoutMetadata } from "../../lab/faults/no-metadata.ts";
import type { LabNode } from "../../lab/node.ts";
import { finishedPod, runPod, runPods } from "../../lab/pods.ts";
import { ensureContainerd } from "../../lab/tools.ts";
import { diagnoseOffline } from "../../src/diagnose/offline.ts";
import { readBolt } from "../../src/node/bolt/read-bolt.ts";
import { readContainerd } from "../../src/node/containerd-facts.ts";
import { neededRecords, readMetadataFile, storedRecords } from "../../src/node/metadata.ts";
import { observeOffline } from "../../src/node/observe-offline.ts";
import { sandboxId } from "../../src/node/types/ids.ts";
import type { ContainerdFacts } from "../../src/node/types/runtime.ts";
import type { MetadataFile } from "../../src/node/types/snapshot.ts";
import { openContainerd } from "../../src/runtime/containerd.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { bytesAsSource } from "../support/bytes-source.ts";

const containerd2 = NO_REAL_NODE === undefined ? await ensureContainerd() : { available: false };
const ROOT = "/var/lib/containerd";
const FILE = `${ROOT}/io.containerd.metadata.v1.bolt/meta.db`;

describe.skipIf(NO_REAL_NODE !== undefined)("the database of a real containerd", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("contains offline what containerd reported before it was stopped", async (runtime) => {
    const node = await start({ runtime });
    await company(node);
    const reported = await everythingReported(node);
    const listed = (await node.check(["ctr", "-n", "k8s.io", "containers", "ls", "-q"])).trim().split("\n");

    await node.stopRuntime();

    const file = read(node);
    expectSame(file, reported);
    expect(file.records.map(({ id }) => id)).toEqual(listed.toSorted());
    expect(containerNames(file)).toEqual(["job_done_default_done_0", "main_busy_default_busy_0"]);
  });

  eachRuntime("is the same while containerd runs, and after a power cut", async (runtime) => {
    const node = await start({ runtime });
    await company(node);
    const reported = await everythingReported(node);
    expectSame(read(node), reported);
    const before = statSync(node.path(FILE));

    await node.powerCut();

    expectSame(read(node), reported);
    const after = statSync(node.path(FILE));
    expect([after.mtimeMs, after.size]).toEqual([before.mtimeMs, before.size]);
  });

  eachRuntime("is read consistently while pods are created and deleted", async (runtime) => {
    const node = await start({ runtime });
    await runPods(node, 4, { name: "first" });
    let isBusy = true;
    const work = runPods(node, 24, { name: "more" }).finally(() => {
      isBusy = false;
    });
    const kinds = new Set<string>();
    while (isBusy) {
      const source = readMetadataFile({ hostRoot: "/", containerdRoot: node.path(ROOT) });
      kinds.add(source.status);
      if (source.status === "read") {
        expect(source.value.damage).toEqual([]);
        expect(source.value.records.length).toBeGreaterThanOrEqual(4);
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await work;
    expect(kinds).toContain("read");
  });

  eachRuntime("with 500 sandboxes is read completely", async (runtime) => {
    const node = await start({ runtime });
    await manyRecords(node, 500);
    const reported = await everythingReported(node);

    await node.powerCut();

    const file = read(node);
    expectSame(file, reported);
    expect(new Set(file.records.map(({ sandbox }) => sandbox?.name)).size).toBe(500);
    expect(named(await facts(node))).toEqual([`dead-after-crash/${node.path(FILE)}`]);
  });

  eachRuntime(
    "shows the duplicate name that prevents containerd's start, and which record is alive",
    async (runtime) => {
      const node = await start({ runtime });
      const pod = await runPod(node, { name: "web" });
      const duplicate = await duplicateRecord(node, pod);

      await expect(node.restartRuntime()).rejects.toThrow(/failed to reserve sandbox name/);
      const alive = diagnoseOffline(await facts(node));
      await node.powerCut();
      const dead = diagnoseOffline(await facts(node));

      expect(alive).toMatchObject([
        {
          id: `recover-duplicate-sandbox-name/${pod.reservedName}`,
          severity: "critical",
          summary: expect.stringContaining("one of them lives and must stay"),
        },
      ]);
      const evidence = alive[0]?.evidence.map(({ fact }) => fact) ?? [];
      // From outside the node's pid namespace its shim belongs to another machine; the cgroup still shows the process.
      expect(evidence.find((fact) => fact.startsWith(pod.sandboxId))).toMatch(/runs in its cgroup/);
      expect(evidence.find((fact) => fact.startsWith(duplicate.sandboxId ?? "none"))).toMatch(/no shim and no process/);
      expect(dead.map(({ class: name }) => name)).toEqual(["recover-duplicate-sandbox-name", "dead-after-crash"]);
      expect(dead[0]?.summary).toContain("nothing of any of them lives");
    },
  );

  eachRuntime("shows what comes back after a power cut, without orderly finished pods", async (runtime) => {
    const node = await start({ runtime });
    const { ready } = await company(node);
    expect(diagnoseOffline(await facts(node))).toEqual([]);

    await node.powerCut();

    const found = diagnoseOffline(await facts(node));
    expect(found).toMatchObject([{ class: "dead-after-crash", subject: { type: "node" } }]);
    expect(found[0]?.summary).toMatch(new RegExp(`^${ready.length} stored sandboxes are`));
    expect(found[0]?.evidence[0]?.fact).toMatch(/: default\/busy, default\/host, default\/quiet$/);
    await node.powerOn();
    const listed = (await node.cri.listPodSandbox(undefined, CALL)).map(({ id }) => id);
    expect(listed).toEqual(expect.arrayContaining([...ready]));
  });

  eachRuntime("shows the duplicate container name that prevents containerd's start", async (runtime) => {
    const node = await start({ runtime });
    const pod = await runPod(node, { name: "web", uid: "web", containers: [{ name: "main" }] });
    const [original = ""] = pod.containerIds;
    const duplicate = await duplicateRecord(node, { ...pod, sandboxId: sandboxId(original) });

    await node.restartRuntime();
    expect(diagnoseOffline(await facts(node))).toEqual([]);
    const dirs = node.path(`${ROOT}/io.containerd.grpc.v1.cri/containers`);
    cpSync(`${dirs}/${original}`, `${dirs}/${duplicate.sandboxId}`, { recursive: true });

    expect(diagnoseOffline(await facts(node))).toMatchObject([
      {
        id: "recover-duplicate-container-name/main_web_default_web_0",
        summary: expect.stringContaining("one of them lives and must stay"),
        evidence: [{ fact: expect.stringContaining(original) }, { fact: expect.stringContaining("no shim") }],
      },
    ]);
    await expect(node.restartRuntime()).rejects.toThrow(/failed to reserve container name/);
  });

  test.skipIf(!containerd2.available)(
    "of 2.3 may contain a duplicate name or an incomplete sandbox in its sandbox store",
    async () => {
      const node = await start({ runtime: "2.3" });
      await interruptedRun(node, { name: "web", uid: "one" });
      const pod = await runPod(node, { name: "web", uid: "one" });
      const half = "f".repeat(64);
      await recordWithoutMetadata(node, half);
      await node.stopRuntime();

      const file = read(node);
      expect(file.sandboxes.filter(({ sandbox }) => sandbox?.name === pod.reservedName)).toHaveLength(2);
      const comesBack = `dead-after-crash/${node.path(FILE)}`;
      expect(named(await facts(node))).toEqual([`recover-missing-metadata/${half}`, comesBack]);
      expect(named({ ...(await facts(node)), containerdVersion: "2.3.0" })).toEqual([comesBack]);
      await node.startRuntime();
      expect(read(node).sandboxes.map(({ id }) => id)).not.toContain(half);
    },
  );

  eachRuntime("damaged or truncated anywhere is a finding or harmless, never an exception", async (runtime) => {
    const node = await start({ runtime });
    await company(node);
    await node.stopRuntime();
    const sound = readFileSync(node.path(FILE));

    const flips = fc.array(fc.nat(sound.length * 8 - 1), { minLength: 1, maxLength: 50 });
    fc.assert(
      fc.property(flips, fc.nat(sound.length), (bits, length) => {
        const copy = Buffer.from(sound);
        for (const bit of bits) copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        storedRecords(readBolt(bytesAsSource(copy), neededRecords).root);
        storedRecords(readBolt(bytesAsSource(copy.subarray(0, length)), neededRecords).root);
      }),
      { numRuns: 200 },
    );
  });

  eachRuntime("that containerd cannot open is found before containerd is started", async (runtime) => {
    const node = await start({ runtime });
    await company(node);
    await node.stopRuntime();
    copyFileSync(node.path(FILE), node.path(`${FILE}.sound`));
    const broken = readFileSync(node.path(FILE));
    broken.fill(0xff, 2 * 4096);
    await node.writeFile(FILE, broken);

    expect(diagnoseOffline(await facts(node))).toMatchObject([{ class: "bolt-corruption", severity: "critical" }]);
    await expect(node.startRuntime()).rejects.toThrow(/ended right after its start/);
  });

  eachRuntime("with one torn meta page is valid, an empty one is re-created, like in containerd", async (runtime) => {
    const node = await start({ runtime });
    await company(node);
    await node.stopRuntime();
    const before = readFileSync(node.path(FILE));
    const newer = before.readBigUInt64LE(64) > before.readBigUInt64LE(4096 + 64) ? 0 : 4096;
    const torn = Buffer.from(before).fill(0xff, newer + 40, newer + 80);
    await node.writeFile(FILE, torn);

    expect(read(node).damage).toEqual([]);
    await node.startRuntime();
    expect(await node.cri.listPodSandbox(undefined, CALL)).toHaveLength(4);

    await node.stopRuntime();
    await node.writeFile(FILE, "");
    expect(diagnoseOffline(await facts(node))).toMatchObject([{ class: "bolt-corruption", severity: "warning" }]);
    await node.startRuntime();
    expect(await node.cri.listPodSandbox(undefined, CALL)).toEqual([]);
  });
});

/** Running pods, one of them in the host network, and one that finished orderly. */
async function company(node: LabNode): Promise<{ readonly ready: readonly string[] }> {
  const labels = { app: "wéb", empty: "" };
  const busy = await runPod(node, { name: "busy", uid: "busy", labels, containers: [{ name: "main" }] });
  const quiet = await runPod(node, { name: "quiet", uid: "quiet", attempt: 3 });
  const host = await runPod(node, { name: "host", uid: "host", hostNetwork: true });
  await finishedPod(node, { name: "done", uid: "done" });
  return { ready: [busy.sandboxId, quiet.sandboxId, host.sandboxId] };
}

/** One real pod, and copies of its record with other ids and names: 500 real ones would take minutes. */
async function manyRecords(node: LabNode, count: number): Promise<void> {
  const pod = await runPod(node, { name: "web-0000", uid: "web-0000" });
  const answer = await containerdCall(node, "containers.v1.Containers/Get", idMessage(pod.sandboxId));
  const original = answer.toString("latin1");
  for (let index = 1; index < count; index += 1) {
    const copy = original
      .replaceAll(pod.sandboxId, unknownId())
      .replaceAll("web-0000", `web-${String(index).padStart(4, "0")}`);
    await containerdCall(node, "containers.v1.Containers/Create", Buffer.from(copy, "latin1"));
  }
}

async function everythingReported(node: LabNode): Promise<ContainerdFacts> {
  const client = openContainerd(node.socket);
  try {
    return await readContainerd(client, CALL);
  } finally {
    client.close();
  }
}

function read(node: LabNode): MetadataFile {
  const source = readMetadataFile({ hostRoot: "/", containerdRoot: node.path(ROOT) });
  if (source.status !== "read") throw new Error(JSON.stringify(source));
  return source.value;
}

/** Compares the database with containerd's answers: ids, kinds, names, labels, times, metadata, leases. */
function expectSame(file: MetadataFile, reported: ContainerdFacts): void {
  expect(file.damage).toEqual([]);
  expect(file.records.map(({ container: _extra, ...record }) => record)).toEqual(byId(reported.records));
  expect(file.sandboxes).toEqual(byId(reported.sandboxes));
  expect(file.leases).toEqual(byId(reported.leases));
}

function byId<T extends { readonly id: string }>(items: readonly T[]): readonly T[] {
  return items.toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

function containerNames(file: MetadataFile): readonly string[] {
  return file.records.flatMap(({ container }) => (container === undefined ? [] : [container.name])).toSorted();
}

function facts(node: LabNode) {
  return observeOffline({
    hostRoot: "/",
    containerdRoot: node.path(ROOT),
    containerdVersion: undefined,
    cniCacheDir: node.path("/var/lib/cni"),
    timeoutMs: CALL.timeoutMs,
  });
}

function named(given: Parameters<typeof diagnoseOffline>[0]): readonly string[] {
  return diagnoseOffline(given).map(({ id }) => id);
}
