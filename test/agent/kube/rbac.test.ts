import { isDeepStrictEqual } from "node:util";
import { afterAll, afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { serveStubApi } from "../../../lab/stub-api/serve.ts";
import { openStore } from "../../../lab/stub-api/store.ts";
import { removeCondition } from "../../../src/agent/kube/withdraw.ts";
import { openFleetGate } from "../../../src/agent/limits/gate.ts";
import { requestQueue } from "../../../src/agent/requests/heal-requests.ts";
import { openApi } from "../../../src/kube/api.ts";
import { attachmentReader } from "../../../src/kube/attachments.ts";
import { orKubeError } from "../../../src/kube/errors.ts";
import { GHOST_HEALS, GHOST_HEALS_OF_NODE, type GhostHeal } from "../../../src/kube/ghost-heal.ts";
import { getPod, isNamespaceIgnored } from "../../../src/kube/pods.ts";
import { readCsiDrivers } from "../../../src/kube/unattached-volumes.ts";
import { watchList } from "../../../src/kube/watched-list.ts";
import { mirrorRig } from "../../kube/mirror-rig.ts";
import { makeRig, PODS } from "../../kube/rig.ts";
import { listOf, podObject } from "../../kube/stub-server.ts";
import { attachmentObject, DRIVER, HANDLE, LEASES, VOLUME, VOLUMES, volumeObject } from "../../kube/volume-objects.ts";
import { ENDING } from "../limits/actions.ts";
import { sighting } from "../page/agent-states.ts";
import { AGENT_ROLES, FLEET_RULES, isAllowed, isUsed, RULES, RULES_AND_VERBS } from "./agent-roles.ts";
import { shownAgent } from "./shown-agent.ts";

const rig = makeRig();
afterEach(() => rig.stop());
afterAll(() => rig.remove());

/** Publishes, takes a slot, withdraws, answers a request to heal. */
async function publishing(): Promise<readonly string[]> {
  const { time, cluster, store, scanned, show } = shownAgent();
  const policy = { slots: 1, namespace: "unghost", breakerShare: 0.3, breakerLeast: 3 };
  const common = { openCluster: cluster.open, timing: time.timing(), warn: () => undefined };
  for (let start = 0; start < 2; start++) {
    const exporter = show();
    const gate = openFleetGate({ ...common, nodeName: () => "n1", policy: () => policy, onBreaker: () => undefined });
    scanned([sighting()]);
    store.publish({ kind: "detected", sighting: sighting() });
    const answer = await gate.ask([ENDING]);
    await time.pass(400_000);
    if (answer.kind === "go") await answer.release();
    await Promise.all([exporter.close(), gate.close()]);
  }
  await removeCondition({ openCluster: cluster.open, name: "n1", hostRoot: "/" });
  const queue = requestQueue({
    ...common,
    nodeName: () => "n1",
    isProven: () => true,
    stop: new AbortController().signal,
    answer: () => Promise.resolve({ outcome: "healed" }),
  });
  const metadata = { name: "one", creationTimestamp: new Date().toISOString() };
  const object = cluster.store.put(`${GHOST_HEALS}/one`, { metadata, spec: { node: "n1", dryRun: true } });
  queue.take([GHOST_HEALS_OF_NODE.reduce(object as never, "n1") as GhostHeal]);
  await queue.idle();
  await time.pass(3_600_000);
  await queue.tidy();
  return cluster.requests;
}

/** What the agent watches, and asks again before it heals. */
async function watching(): Promise<readonly string[]> {
  const mirror = await mirrorRig();
  await mirror.facts(true);
  const store = openStore();
  store.put("/api/v1/namespaces/default", { metadata: { name: "default" } });
  const server = await serveStubApi({ store });
  onTestFinished(() => server.close());
  const access = { server: new URL(server.url), tls: { insecure: false }, from: "test", token: undefined };
  const watched = watchList(GHOST_HEALS_OF_NODE, {
    open: () => Promise.resolve({ api: openApi(access, { timeoutMs: 20_000 }), name: "n1" }),
    openMs: 20_000,
    onChange: () => undefined,
  });
  onTestFinished(() => watched.close());
  const api = openApi(access, { timeoutMs: 20_000 });
  onTestFinished(() => api.close());
  await getPod(api, { namespace: "default", name: "web-1" });
  await isNamespaceIgnored(api, "default");
  await vi.waitUntil(() => watchesIn(mirror.api.requests) === 3 && watchesIn(server.requests) === 1, {
    timeout: 30_000,
  });
  return [...mirror.api.requests, ...server.requests];
}

function watchesIn(requests: readonly string[]): number {
  return new Set(requests.flatMap((request) => (request.includes("watch=true") ? [request.split("?")[0]] : []))).size;
}

const ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments";
const MANY = { continue: "next", remainingItemCount: 9000 };

/** A pod waits for a volume; in a large cluster its attachment is asked for by name. */
async function volumes(): Promise<readonly string[]> {
  const pod = podObject({ name: "db-0", uid: "u1", phase: "Pending" });
  const claims = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  let isLarge = false;
  const server = await rig.serve({
    [PODS]: () => ({ body: listOf([{ ...pod, spec: { ...pod.spec, volumes: claims } }]) }),
    [ATTACHMENTS]: () => {
      const list = listOf([attachmentObject({ status: {} })]);
      return { body: isLarge ? { ...list, metadata: MANY } : list };
    },
    [`${VOLUMES}/${VOLUME}`]: () => ({ body: volumeObject() }),
    [LEASES]: () => ({ body: listOf([]) }),
  });
  await rig.askFacts();
  isLarge = true;
  const access = { server: new URL(server.url), tls: { insecure: false }, from: "test", token: undefined };
  const api = openApi(access, { timeoutMs: 20_000 });
  onTestFinished(() => api.close());
  const read = attachmentReader();
  const awaited = { attached: [], inUse: [{ driver: DRIVER, handle: HANDLE }] };
  for (let scan = 0; scan < 2; scan++) await read(api, { node: "n1", isAwaited: true, volumes: awaited, most: 5 });
  await orKubeError(readCsiDrivers(api, "n1"));
  return server.asked.map(({ method, path }) => `${method} ${path}`);
}

const CREATE_REPORT = { group: "unghost.dev", resource: "ghostreports", verb: "create" };

describe("agent role", () => {
  test("allows every request for publishing and for the fleet", async () => {
    const requests = await publishing();

    expect(requests.filter((request) => !isAllowed(request))).toEqual([]);
    expect(new Set(requests.map((request) => request.split(" ")[0]))).toEqual(
      new Set(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    );
  });

  test("has no rule that nothing uses", async () => {
    const requests = [...(await publishing()), ...(await watching()), ...(await volumes())];

    // A server wants create as well for an apply that creates its object.
    const isForApply = (rule: object) =>
      isUsed({ ...CREATE_REPORT, verb: "patch" }, requests) && isDeepStrictEqual(rule, CREATE_REPORT);
    expect(RULES_AND_VERBS.filter((rule) => !isUsed(rule, requests) && !isForApply(rule))).toEqual([]);
  });

  test("has no wildcard, and a reason for each rule", () => {
    expect(
      [...RULES, ...FLEET_RULES].flatMap((rule) => [...rule.apiGroups, ...rule.resources, ...rule.verbs]),
    ).not.toContain("*");
    const lines = AGENT_ROLES.split("\n");
    const unexplained = lines.filter((line, index) => /^ {2}- apiGroups/.test(line) && !isExplained(lines, index));
    expect(unexplained).toEqual([]);
  });
});

/** By a comment above it, or above the previous rule if both have the same purpose. */
function isExplained(lines: readonly string[], index: number): boolean {
  const before = lines.slice(Math.max(0, index - 4), index);
  return before.some((line) => line.trim().startsWith("#"));
}
