import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test, vi } from "vitest";
import type { Store } from "../../lab/stub-api/store.ts";
import { mirrorRig, putPod, TRUSTING } from "./mirror-rig.ts";
import { attachmentObject, volumeObject } from "./volume-objects.ts";

const HANG_GUARD_MS = 60_000;
const PODS = 110;
const EVENTS = 5000;
const ATTACHMENTS = 12;

/** A node where every pod waits for its sandbox and its volume, in a cluster with many events about it. */
function crowded(store: Store): void {
  for (let index = 0; index < PODS; index++) {
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: `data-${index}` } }];
    putPod(store, `pod-${index}`, { spec: { nodeName: "n1", volumes }, status: { phase: "Pending" } });
  }
  for (let index = 0; index < EVENTS; index++) {
    const name = `pod-${index % PODS}.${index}`;
    store.put(`/api/v1/namespaces/default/events/${name}`, {
      metadata: { name, namespace: "default" },
      involvedObject: { kind: "Pod", namespace: "default", name: `pod-${index % PODS}` },
      type: "Warning",
      reason: "FailedCreatePodSandBox",
      message: "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network ".repeat(8),
      count: index,
    });
  }
  for (let index = 0; index < ATTACHMENTS; index++) {
    const parts = { name: `csi-${index}`, volume: `pv-${index}`, attacher: `driver-${index % 3}` };
    store.put(`/apis/storage.k8s.io/v1/volumeattachments/${parts.name}`, attachmentObject(parts));
    const claim = { namespace: "default", name: `data-${index}` };
    store.put(`/api/v1/persistentvolumes/${parts.volume}`, volumeObject(claim));
  }
}

describe("110 waiting pods and 5,000 events", () => {
  test.each([
    ["that was just heard from", TRUSTING],
    ["that has been silent", { ...TRUSTING, silentWhileUnhealthyMs: 0 }],
  ])("cost three requests per scan after the first, with a cluster %s", async (_what, trust) => {
    const rig = await mirrorRig({ fill: crowded, trust });
    const first = await rig.facts(true);
    const isWatched = (what: string): boolean =>
      rig.api.requests.some((one) => one.startsWith(`GET /api/v1/${what}?`) && one.includes("watch=true"));
    await vi.waitFor(() => expect(["pods", "nodes", "namespaces"].every(isWatched)).toBe(true), HANG_GUARD_MS);
    rig.takeRequests();

    for (let scan = 0; scan < 5; scan++) {
      const facts = await rig.facts(true);

      expect(rig.takeRequests().length).toBeLessThanOrEqual(3);
      expect(facts.pods).toHaveLength(PODS + 1);
      expect(facts.events?.length).toBeGreaterThan(0);
      // Their volumes are cached.
      expect(facts.unattached?.map(({ claim }) => claim?.name)).toEqual(
        first.unattached?.map(({ claim }) => claim?.name),
      );
      expect(facts.unattached?.every(({ claim }) => claim !== undefined)).toBe(true);
    }
  });

  test("keep a long-running process below 100 MB", { timeout: HANG_GUARD_MS }, async () => {
    const rig = await mirrorRig({ fill: crowded });
    const program = join(import.meta.dirname, "fixtures/mirror-process.ts");
    const engine = join(import.meta.dirname, "../../node_modules/.bin/bun");

    const { stdout } = await promisify(execFile)(engine, [program, rig.kubeconfig, "60"]);

    const seen: { readonly pods: number; readonly events: number; readonly peakMb: number } = JSON.parse(stdout);
    expect(seen).toMatchObject({ pods: PODS + 1, events: expect.any(Number) });
    expect(seen.events).toBeGreaterThan(0);
    expect(seen.peakMb).toBeLessThan(100);
  });
});
