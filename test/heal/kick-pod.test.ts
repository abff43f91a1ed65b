import { afterEach, describe, expect, test } from "vitest";
import type { Finding } from "../../src/classes/finding.ts";
import { readHistory } from "../../src/heal/history.ts";
import { uninterrupted } from "../../src/heal/interruption.ts";
import type { NodeTools } from "../../src/heal/node-tools.ts";
import { kickPod } from "../../src/heal/steps/kick-pod.ts";
import type { Api } from "../../src/kube/api.ts";
import { KubeError } from "../../src/kube/kube-error.ts";
import { podObject } from "../kube/stub-server.ts";
import { makeWorkshop, type Workshop } from "./workshop.ts";

const STEP = { kind: "kick-pod", namespace: "default", name: "attacher", uid: "uid-1", node: "n1" } as const;
const FINDING: Finding = {
  id: "dead-after-crash/x",
  class: "dead-after-crash",
  severity: "critical",
  subject: { type: "node" },
  summary: "",
  evidence: [],
  blocks: [],
  treatment: { automatic: true, reversible: false, steps: [] },
  cure: [],
};
const CONTROLLER = [{ kind: "ReplicaSet", controller: true }];
const CRASHING = { containerStatuses: [{ restartCount: 9, state: { waiting: { reason: "CrashLoopBackOff" } } }] };
const IGNORE = { "unghost.dev/ignore": "true" };

interface Parts {
  readonly uid?: string;
  readonly node?: string;
  readonly owners?: readonly object[];
  readonly status?: object;
  readonly marks?: Readonly<Record<string, string>>;
  readonly namespaceMarks?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
  readonly isGone?: boolean;
  readonly onDelete?: KubeError;
}

function cluster(parts: Parts = {}): Api & { readonly deleted: readonly unknown[] } {
  const { uid = "uid-1", node = "n1", owners = CONTROLLER, status = CRASHING, marks = {}, onDelete } = parts;
  const deleted: unknown[] = [];
  let isGone = parts.isGone ?? false;
  const object = podObject({ name: STEP.name, uid, node, annotations: marks });
  const deletion = parts.deletionTimestamp === undefined ? {} : { deletionTimestamp: parts.deletionTimestamp };
  const pod = { ...object, metadata: { ...object.metadata, ownerReferences: owners, ...deletion }, status };
  return {
    deleted,
    get: (path) => {
      if (!path.includes("/pods/"))
        return Promise.resolve({ metadata: { name: "default", labels: parts.namespaceMarks ?? {} } });
      return isGone ? Promise.reject(new KubeError("not-found", "not there")) : Promise.resolve(pod);
    },
    delete: (path, options) => {
      if (onDelete !== undefined) return Promise.reject(onDelete);
      deleted.push(path, options);
      isGone = true;
      return Promise.resolve({});
    },
    close: () => undefined,
  };
}

let workshop: Workshop | undefined;
afterEach(() => workshop?.remove());

async function kick(api: Api | undefined) {
  workshop = await makeWorkshop();
  const tools = {
    journal: workshop.journal,
    interruption: uninterrupted(),
    cluster: () => Promise.resolve(api),
  } satisfies Partial<Record<keyof NodeTools, unknown>>;
  const result = await kickPod(STEP, FINDING, tools as unknown as NodeTools);
  await workshop.journal.close();
  return { result, history: (await readHistory(workshop.stateDir.journal)).records };
}

describe("restarting a pod", () => {
  test("deletes this very pod, after the journal knows of it", async () => {
    const api = cluster();

    const { result, history } = await kick(api);

    expect(result).toMatchObject({ kind: "done", journalId: history[0]?.id });
    expect(api.deleted).toEqual([
      "/api/v1/namespaces/default/pods/attacher",
      expect.objectContaining({ preconditions: { uid: "uid-1" } }),
    ]);
    expect(history).toMatchObject([
      { action: { kind: "kick-pod", name: "attacher", uid: "uid-1" }, outcome: "healed" },
    ]);
  });

  test.each<readonly [string, Parts, "unneeded" | "refused"]>([
    ["is gone", { isGone: true }, "unneeded"],
    ["was made anew", { uid: "uid-2" }, "unneeded"],
    ["is being deleted", { deletionTimestamp: "2026-03-01T12:00:00Z" }, "unneeded"],
    ["has come up by itself", { status: { phase: "Running" } }, "unneeded"],
    ["has no controller", { owners: [] }, "refused"],
    ["has an owner that is no controller", { owners: [{ kind: "Node" }] }, "refused"],
    ["lives on another node", { node: "n2" }, "refused"],
    ["is opted out", { marks: IGNORE }, "refused"],
    ["is in a namespace that is opted out", { namespaceMarks: IGNORE }, "refused"],
  ])("touches nothing where it %s", async (_what, parts, kind) => {
    const api = cluster(parts);

    const { result, history } = await kick(api);

    expect([result.kind, api.deleted, history]).toEqual([kind, [], []]);
  });

  test.each<readonly [string, Api | undefined, "refused" | "failed"]>([
    ["there is no API", undefined, "refused"],
    ["it is made anew at that moment", cluster({ onDelete: new KubeError("conflict", "uid") }), "refused"],
    ["deleting is not allowed", cluster({ onDelete: new KubeError("forbidden", "no") }), "failed"],
  ])("says so where %s", async (_what, api, kind) => {
    expect((await kick(api)).result.kind).toBe(kind);
  });
});
