import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { type Crash, PodSchema, podState } from "../../src/kube/objects.ts";

const AT = "2026-11-15T03:20:00Z";
const ERROR = { terminated: { exitCode: 1, reason: "Error", finishedAt: AT } };
const OK = { terminated: { exitCode: 0, reason: "Completed", finishedAt: AT } };
const RUNNING = { running: { startedAt: AT } };

describe("crash state of a pod's containers", () => {
  test.each<readonly [string, object, Crash | undefined]>([
    ["a running container", { containerStatuses: [{ restartCount: 0, state: RUNNING }] }, undefined],
    [
      "kubelet backs off",
      {
        containerStatuses: [{ restartCount: 4, state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: ERROR }],
      },
      { down: true, endedAt: new Date(AT) },
    ],
    [
      "kubelet 1.36 shows the last exit instead",
      { containerStatuses: [{ restartCount: 4, state: ERROR, lastState: ERROR }] },
      { down: true, endedAt: new Date(AT) },
    ],
    [
      "it was restarted",
      { containerStatuses: [{ restartCount: 4, state: RUNNING, lastState: ERROR }] },
      { down: false, endedAt: new Date(AT) },
    ],
    [
      "a sidecar among its init containers",
      { initContainerStatuses: [{ restartCount: 4, state: ERROR }], containerStatuses: [{ state: RUNNING }] },
      { down: true, endedAt: new Date(AT) },
    ],
    [
      "an init container that succeeded in the end",
      { initContainerStatuses: [{ state: OK, lastState: ERROR }] },
      undefined,
    ],
    ["a job that failed permanently", { phase: "Failed", containerStatuses: [{ state: ERROR }] }, undefined],
    ["an orderly restart", { containerStatuses: [{ restartCount: 1, state: RUNNING, lastState: OK }] }, undefined],
  ])("%s", (_, status, crash) => {
    const metadata = { name: "p", namespace: "n", uid: "u" };
    const pod = v.parse(PodSchema, { metadata, status: { phase: "Running", ...status } });

    expect(podState(pod).crash).toEqual(crash);
  });
});
