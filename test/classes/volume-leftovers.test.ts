import { describe, expect, test } from "vitest";
import { read } from "../../src/host/source.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { InotifyUse, KnownPod, Kubernetes, PodEvent } from "../../src/node/types/snapshot.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import {
  ago,
  containerOf,
  FINISHED,
  LOST,
  type NodeParts,
  PATIENT,
  sandboxOf,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

const PATH = "/var/lib/kubelet/pods/a";
const TEARDOWN = `volume-teardown-busy/${PATH}`;
const ORPHANED = `orphaned-volumes-directory/${PATH}`;
const VOLUMES = { uid: podUid("a"), path: PATH, changedAt: ago(900), mounts: [`${PATH}/volumes/csi/pvc/mount`] };
const POD: KnownPod = { namespace: "default", name: "pod-a", uid: podUid("a"), terminating: true };

function api(pods: readonly KnownPod[], events: readonly PodEvent[] = []): Kubernetes {
  return { source: "api", pods, events, holds: { paused: false, node: false, namespaces: [] } };
}

const endedSecondsAgo = (seconds: number) =>
  containerOf("a", { exit: { ...FINISHED, finishedAt: BigInt(ago(seconds).getTime()) * 1_000_000n } });

/** Kept by kubelet, whatever its volumes do. */
const ended = { sandboxes: [sandboxOf("a")], containers: [endedSecondsAgo(900)], kubeletStarted: 10 } as const;
const LINE = `E0301 kubelet: UnmountVolume.TearDown failed for volume "pvc" pod "a": target is busy`;

describe("volumes of a pod that is being deleted", () => {
  test.each<readonly [string, NodeParts, Partial<typeof VOLUMES>, boolean]>([
    ["its containers ended long ago", ended, {}, true],
    ["nothing is mounted", ended, { mounts: [] }, false],
    ["its containers ended just now", { ...ended, containers: [endedSecondsAgo(30)] }, {}, false],
    ["a volume was unmounted just now", ended, { changedAt: ago(30) }, false],
    ["how a container ended is unknown", { ...ended, containers: [containerOf("a")] }, {}, false],
    ["its sandbox is Ready", { ...ended, sandboxes: [sandboxOf("a", { state: "ready" })] }, {}, false],
    ["nothing shows when it ended", { kubeletStarted: 10 }, {}, false],
    [
      "kubelet reports that it cannot unmount",
      { kubeletStarted: 10, logLines: [LINE.replace('"a"', `"${PATH}"`)] },
      {},
      true,
    ],
  ])("%s", (_, parts, volumes, isFound) => {
    const { findings } = diagnosed(parts, PATIENT, {
      kubernetes: api([POD]),
      podVolumes: read([{ ...VOLUMES, ...volumes }]),
    });

    expect(findings.map(({ id }) => id).filter((id) => id === TEARDOWN)).toEqual(isFound ? [TEARDOWN] : []);
  });
});

describe("the directory of a pod that is gone", () => {
  test.each<readonly [string, NodeParts, boolean]>([
    ["kubelet runs for long", { kubeletStarted: 10 }, true],
    ["kubelet has just started", { kubeletStarted: UPTIME_SECONDS - 30 }, false],
    ["no kubelet runs", {}, false],
    [
      "the runtime still has a sandbox of it",
      { kubeletStarted: 10, sandboxes: [sandboxOf("a")], containers: [containerOf("a", { exit: LOST })] },
      false,
    ],
  ])("%s", (_, parts, isFound) => {
    const found = named(diagnosed(parts, PATIENT, { kubernetes: api([]), podVolumes: read([VOLUMES]) }));

    expect(found.filter((id) => id === ORPHANED)).toEqual(isFound ? [ORPHANED] : []);
  });
});

describe("Multi-Attach", () => {
  const message = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) other';
  const event: PodEvent = {
    namespace: "default",
    pod: "pod-a",
    reason: "FailedAttachVolume",
    message,
    count: 1,
    at: ago(600),
  };
  const waiting: KnownPod = { ...POD, terminating: false, phase: "Pending" };

  test.each<readonly [string, KnownPod, Partial<PodEvent>, boolean]>([
    ["and the pod is still Pending", waiting, {}, true],
    ["a minute ago", waiting, { at: ago(60) }, false],
    ["at an unknown time", waiting, { at: undefined }, false],
    ["and the pod runs by now", { ...waiting, phase: "Running" }, {}, false],
    ["and the pod is being deleted", { ...waiting, terminating: true }, {}, false],
    ["of an earlier pod of the same name", waiting, { uid: "other" }, false],
    ["of a mirror pod's object", { ...waiting, objectUid: "object" }, { uid: "object" }, true],
    ["quoted by another error", waiting, { message: `x ${message}` }, false],
  ])("was reported %s", (_, pod, parts, isFound) => {
    const found = named(diagnosed({}, PATIENT, { kubernetes: api([pod], [{ ...event, ...parts }]) }));

    expect(found).toEqual(isFound ? ["volume-attachment-stuck/pvc-1"] : []);
  });
});

test.each<readonly [number, boolean]>([
  [100, false],
  [126, false],
  [127, true],
  [140, true],
])("%i inotify instances of 128 are exhausted: %s", (used, isFound) => {
  const use: InotifyUse = { limit: 128, used, holders: [{ name: "kubelet", count: used }] };

  expect(diagnosed({}, PATIENT, { inotify: read(use) }).findings).toHaveLength(isFound ? 1 : 0);
});
