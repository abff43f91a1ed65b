import { describe, expect, test } from "vitest";
import { DEFAULT_WAITS, uninterrupted } from "../../../src/heal/proof/fresh-facts.ts";
import { nodeReadiness } from "../../../src/heal/steps/processes.ts";
import type { Api } from "../../../src/kube/api.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { fakeApi } from "../../kube/fake-api.ts";

const DOWN = { type: "Ready", status: "False", message: "container runtime is down" };
const READY = { type: "Ready", status: "True", message: "kubelet is posting ready status" };

/** Returns these conditions one after the other, the last one forever. */
function apiWith(...conditions: readonly object[]): Api {
  const left = [...conditions];
  const next = () => (left.length > 1 ? left.shift() : left[0]);
  return fakeApi({ get: () => Promise.resolve({ status: { conditions: [next()] } }) });
}

const TOOLS = { interruption: uninterrupted(), sleep: () => Promise.resolve(), waits: DEFAULT_WAITS };

function ask(
  node: string | undefined,
  api: Api | undefined,
  kubeletMs = DEFAULT_WAITS.kubeletMs,
  interruption = uninterrupted(),
) {
  const tools = {
    interruption,
    cluster: (deadlineMs: number) => {
      // The API is open during the wait for kubelet, and one query longer.
      expect(deadlineMs).toBe(kubeletMs + DEFAULT_WAITS.queryMs);
      return Promise.resolve(api);
    },
    sleep: () => Promise.resolve(),
    waits: { ...DEFAULT_WAITS, kubeletMs },
  };
  return nodeReadiness(node, tools);
}

describe("waiting for the node to become Ready", () => {
  test("returns when the node is Ready", async () => {
    expect(await ask("n1", apiWith(DOWN, DOWN, READY))).toEqual({
      code: "node-ready",
      text: "the runtime answers Status again, and the node n1 is Ready",
    });
  });

  test("ends with the kubelet timeout and quotes kubelet's message", async () => {
    expect(await ask("n1", apiWith(DOWN), 5)).toMatchObject({
      code: "node-not-ready",
      text: expect.stringContaining("container runtime is down"),
    });
    expect(await ask("n1", apiWith({ type: "DiskPressure", status: "False" }), 5)).toMatchObject({
      code: "node-not-ready",
    });
  });

  test("is skipped when the run is stopping", async () => {
    const { code, text } = await ask("n1", apiWith(DOWN, READY), undefined, {
      ...uninterrupted(),
      stop: AbortSignal.abort(),
    });
    expect(code).toBe("node-not-ready");
    expect(text).toMatch(/node n1 is not Ready after 0s: container runtime is down/);
  });

  test("closes the API client, and rethrows an internal error", async () => {
    let closed = 0;
    const close = () => {
      closed += 1;
    };
    await ask("n1", { ...apiWith(READY), close });
    const broken = { ...apiWith(READY), close, get: () => Promise.reject(new TypeError("a mistake")) };
    await expect(ask("n1", broken)).rejects.toThrow("a mistake");
    expect(closed).toBe(2);
  });

  test("reports unknown without an API server", async () => {
    const down = fakeApi({ get: () => Promise.reject(new KubeError("unreachable", "connection refused")) });
    expect(await ask(undefined, apiWith(READY))).toMatchObject({
      code: "node-not-asked",
      text: expect.stringContaining("no API server"),
    });
    expect(await ask("n1", undefined)).toMatchObject({
      code: "node-not-asked",
      text: expect.stringContaining("no Kubernetes API"),
    });
    expect(await nodeReadiness("n1", TOOLS)).toMatchObject({ code: "node-not-asked" });
    expect(await ask("n1", down)).toMatchObject({
      code: "node-not-asked",
      text: expect.stringContaining("connection refused"),
    });
  });
});
