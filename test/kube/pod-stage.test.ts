import { describe, expect, test } from "vitest";
import { type PodStage, podStage } from "../../src/kube/volume-users.ts";

const RUNNING = { state: { running: { startedAt: "2026-11-15T03:20:00Z" } } };
const ENDED = { state: { terminated: { exitCode: 0 } } };
const WAITING = { state: { waiting: { reason: "ContainerCreating" } } };

describe("the stage of a pod", () => {
  test.each<readonly [string, object | undefined, PodStage]>([
    ["no status", undefined, "active"],
    ["no phase", {}, "active"],
    ["not started yet", { phase: "Pending", containerStatuses: [WAITING] }, "waiting"],
    ["an init container runs", { phase: "Pending", initContainerStatuses: [RUNNING] }, "active"],
    ["an init container has run", { phase: "Pending", initContainerStatuses: [ENDED] }, "active"],
    [
      "a container ran before",
      { phase: "Pending", containerStatuses: [{ ...WAITING, lastState: ENDED.state }] },
      "active",
    ],
    ["running", { phase: "Running", containerStatuses: [RUNNING] }, "active"],
    ["succeeded", { phase: "Succeeded", containerStatuses: [ENDED] }, "finished"],
    ["failed", { phase: "Failed", containerStatuses: [ENDED] }, "finished"],
    ["evicted, and a container still runs", { phase: "Failed", containerStatuses: [ENDED, RUNNING] }, "active"],
    ["a debug container still runs", { phase: "Succeeded", ephemeralContainerStatuses: [RUNNING] }, "active"],
    ["unknown", { phase: "Unknown" }, "active"],
  ])("%s", (_, status, stage) => {
    expect(podStage({ metadata: { name: "p", namespace: "n", uid: "u" }, ...(status && { status }) })).toBe(stage);
  });
});
