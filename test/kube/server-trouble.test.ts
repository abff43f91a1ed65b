import type { ServerResponse } from "node:http";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { makeRig, PODS } from "./rig.ts";
import { listOf, podObject, type Reply, statusOf } from "./stub-server.ts";

const rig = makeRig();
afterEach(() => rig.stop());
afterAll(() => rig.remove());

describe("a failing server", () => {
  test.each([429, 500, 503])("that answers %i once is retried", async (status) => {
    let times = 0;
    const troubled = (): Reply => {
      times += 1;
      return times === 1 ? statusOf(status, "busy") : { body: listOf([podObject({ name: "p", uid: "u" })]) };
    };
    await rig.serve({ [PODS]: troubled });

    expect((await rig.askFacts()).pods).toHaveLength(1);
    expect(times).toBe(2);
  });

  test.each([429, 500])("that continues to answer %i is not retried further", async (status) => {
    const stub = await rig.serve({ [PODS]: () => statusOf(status, "etcd is gone") });

    const answer = await rig.ask();

    expect(answer).toMatchObject({
      kind: "failed",
      reason: expect.stringMatching(new RegExp(`${status} .*etcd is gone`)),
    });
    expect(stub.asked.filter(({ path }) => path === PODS)).toHaveLength(2);
  });

  test("with a Retry-After beyond the timeout is not waited for", async () => {
    const later: Reply = { status: 429, headers: { "retry-after": "3600" }, body: "" };
    const stub = await rig.serve({ [PODS]: () => later });

    expect(await rig.ask()).toMatchObject({ kind: "failed", reason: expect.stringContaining("429") });
    expect(stub.asked.filter(({ path }) => path === PODS)).toHaveLength(1);
  });

  test.each([
    [401, "Unauthorized"],
    [403, 'pods is forbidden: User "x" cannot list'],
  ])("that answers %i is quoted, not retried", async (status, message) => {
    const stub = await rig.serve({ [PODS]: () => statusOf(status, message) });

    const answer = await rig.ask();

    expect(answer).toMatchObject({
      kind: "failed",
      reason: expect.stringContaining(`${status} to ${PODS}: ${message}`),
    });
    expect(stub.asked.filter(({ path }) => path === PODS)).toHaveLength(1);
  });

  test.each<[string, Reply, RegExp]>([
    ["something else than JSON", { body: "<html>" }, /not JSON/],
    ["truncated JSON", { body: '{"items":[{"metadata"' }, /not JSON/],
    ["something else than a list", { body: { kind: "Pod" } }, /has no list structure/],
    ["pods without a uid", { body: listOf([{ metadata: { name: "x", namespace: "y" } }]) }, /has no list structure/],
    [
      "less than it announced",
      (response) => {
        response.writeHead(200, { "content-length": "1000" });
        response.write('{"items":[');
        setImmediate(() => response.destroy());
      },
      /broke off|cannot be reached/,
    ],
    [
      "a cut connection",
      (response) => {
        response.destroy();
      },
      /cannot be reached/,
    ],
    [
      "a page of another program",
      { status: 302, headers: { location: "https://login.lab" }, body: "" },
      /answered 302/,
    ],
  ])("that answers with %s is not trusted", async (_what, reply, expected) => {
    await rig.serve({ [PODS]: () => reply });

    expect(await rig.ask()).toMatchObject({ kind: "failed", reason: expect.stringMatching(expected) });
  });

  test("whose answers together hold more values than the limit is given up", async () => {
    const empty = { kind: "List", metadata: { resourceVersion: "1" }, items: [] };
    await rig.serve({ [PODS]: () => ({ body: { ...empty, unused: Array.from({ length: 3000 }, () => 0) } }) });

    expect(await rig.ask({ maxValues: 2000 })).toMatchObject({
      kind: "failed",
      reason: expect.stringContaining("its answer has more than 2000 values"),
    });
  });

  test("that sends more than the limit is disconnected", async () => {
    const flood = (response: ServerResponse): void => {
      response.writeHead(200);
      const pour = (): void => {
        while (!response.destroyed && response.write(" ".repeat(64 * 1024)));
        if (!response.destroyed) response.once("drain", pour);
      };
      pour();
    };
    await rig.serve({ [PODS]: () => flood });

    const answer = await rig.ask({ maxBytes: 256 * 1024 });

    expect(answer).toMatchObject({ kind: "failed", reason: expect.stringContaining("larger than 262144 bytes") });
  });

  test.each<[string, Reply]>([
    ["never answers", () => undefined],
    [
      "never ends its answer",
      (response) => {
        response.writeHead(200);
        response.write("{");
      },
    ],
  ])("that %s times out", async (_what, reply) => {
    await rig.serve({ [PODS]: () => reply });

    expect(await rig.ask({ timeoutMs: 300 })).toMatchObject({
      kind: "failed",
      reason: expect.stringContaining("did not answer in time"),
    });
  });

  test("that is unreachable is named", async () => {
    const gone = await rig.serve();
    await gone.close();

    const answer = await rig.ask({ server: gone.url });

    expect(answer).toMatchObject({
      kind: "failed",
      reason: expect.stringContaining(`${gone.url} (by ${rig.kubeconfig}) cannot be reached`),
    });
  });
});
