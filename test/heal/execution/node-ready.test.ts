import { describe, expect, test } from "vitest";
import { DEFAULT_WAITS, uninterrupted } from "../../../src/heal/execution/waits.ts";
import { nodeReadiness } from "../../../src/heal/steps/free-cni-lock.ts";
import type { Api } from "../../../src/kube/api.ts";
import { KubeError } from "../../../src/kube/kube-error.ts";
import { fakeApi } from "../../kube/fake-api.ts";

const DOWN = { type: "Ready", status: "False", message: "container runtime is down" };
const READY = { type: "Ready", status: "True", message: "kubelet is posting ready status" };

/** Gives these conditions one after the other, the last one forever. */
function apiWith(...conditions: readonly object[]): Api {
  const left = [...conditions];
  const next = () => (left.length > 1 ? left.shift() : left[0]);
  return fakeApi({ get: () => Promise.resolve({ status: { conditions: [next()] } }) });
}

function ask(node: string | undefined, api: Api | undefined, kubeletMs = DEFAULT_WAITS.kubeletMs) {
  const tools = {
    interruption: uninterrupted(),
    cluster: () => Promise.resolve(api),
    sleep: () => Promise.resolve(),
    waits: { ...DEFAULT_WAITS, kubeletMs },
  };
  return nodeReadiness(node, tools);
}

describe("whether the node turns Ready", () => {
  test("is waited for and reported", async () => {
    expect(await ask("n1", apiWith(DOWN, DOWN, READY))).toEqual({
      code: "node-ready",
      words: "the runtime answers Status again, and the node n1 is Ready",
    });
  });

  test("is not waited for longer than kubelet is given, and what kubelet says is quoted", async () => {
    expect(await ask("n1", apiWith(DOWN), 5)).toMatchObject({
      code: "node-not-ready",
      words: expect.stringContaining("container runtime is down"),
    });
    expect(await ask("n1", apiWith({ type: "DiskPressure", status: "False" }), 5)).toMatchObject({
      code: "node-not-ready",
    });
  });

  test("is reported as unknown without an API server", async () => {
    const down = fakeApi({ get: () => Promise.reject(new KubeError("unreachable", "connection refused")) });
    expect(await ask(undefined, apiWith(READY))).toMatchObject({ code: "node-not-asked" });
    expect(await ask("n1", undefined)).toMatchObject({ code: "node-not-asked" });
    expect(await ask("n1", down)).toMatchObject({
      code: "node-not-asked",
      words: expect.stringContaining("connection refused"),
    });
  });
});
