import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { absent, failed } from "../../src/host/source.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import { buildReport } from "../../src/report/build.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import {
  AT_ONCE,
  addressOf,
  containerOf,
  FINISHED,
  idOf,
  LOST,
  type NodeParts,
  recordOf,
  resultOf,
  sandboxOf,
  scratchOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const ghost: NodeParts = {
  sandboxes: [sandboxOf("a")],
  records: [recordOf("a")],
  containers: [containerOf("a", { exit: LOST })],
  results: [resultOf("a", "empty")],
  addresses: [addressOf("a", "10.88.0.2")],
};

describe("verdict", () => {
  test("is healthy when nothing is wrong and everything was read", () => {
    expect(diagnosed({ sandboxes: [sandboxOf("a", { state: "ready" })] }).verdict).toBe("healthy");
  });

  test("is ghosts as soon as there is one finding, whatever could not be read", () => {
    expect(diagnosed(ghost).verdict).toBe("ghosts");
    expect(diagnose(snapshotOf(ghost, { netns: failed("no") }), AT_ONCE).verdict).toBe("ghosts");
  });

  test.each(["boot", "cri", "containerd", "netns", "processes"] as const)("is unknown without %s", (source) => {
    expect(diagnose(snapshotOf({}, { [source]: failed("no") }), AT_ONCE).verdict).toBe("unknown");
  });

  test.each(["results", "multus", "flannel", "hostLocal"] as const)("is unknown without cni.%s", (source) => {
    const snapshot = snapshotOf();
    const cni = { ...snapshot.cni, [source]: failed("no") } satisfies Snapshot["cni"];

    expect(diagnose({ ...snapshot, cni }, AT_ONCE).verdict).toBe("unknown");
  });

  test("is unknown when the end of a dead sandbox is unknown, and that sandbox is kept", () => {
    const dead = { sandboxes: [sandboxOf("a")], containers: [containerOf("a", { endUnread: true })] };
    const { verdict, kept } = diagnosed(dead);

    expect([verdict, kept.map(({ reason }) => reason.code)]).toEqual(["unknown", ["container-ends-unread"]]);
    expect(diagnosed({ ...dead, containers: [containerOf("a", { exit: FINISHED })] }).verdict).toBe("healthy");
  });

  test("is unknown when a class was asked for that no scan can show, and the report says where to search", () => {
    const diagnosis = diagnose(snapshotOf(), { ...AT_ONCE, only: ["second-idempotent-del"] });
    const { problems } = buildReport(snapshotOf(), diagnosis);

    expect(diagnosis.verdict).toBe("unknown");
    expect(problems).toEqual([
      {
        source: "logs",
        problem: expect.stringMatching(/^whether there is a second-idempotent-del is unknown: no scan can show it\. /),
        next: expect.stringContaining("unghost explain --journal"),
      },
    ]);
  });

  test("is unknown when the API was asked for by name and did not answer", () => {
    const facts = { kubernetes: { source: "kubelet", pods: [], error: "cannot be reached" } } as const;

    expect(diagnose(snapshotOf({}, facts), AT_ONCE).verdict).toBe("healthy");
    expect(diagnose(snapshotOf({}, facts), { ...AT_ONCE, needsApi: true }).verdict).toBe("unknown");
  });

  test("is unknown while a shim does not answer", () => {
    const ready = { sandboxes: [sandboxOf("a", { state: "ready" })], records: [recordOf("a")] };
    const task = { containerId: idOf("a"), pid: 9, status: "running" } as const;

    expect(diagnosed({ ...ready, tasks: [task] }).verdict).toBe("healthy");
    expect(diagnosed({ ...ready, tasks: [{ ...task, status: "unanswered" }] }).verdict).toBe("unknown");
  });

  test("does not depend on logs, nor on sources that an ordinary node does not have", () => {
    const { cni } = snapshotOf();
    const without = { logs: failed<never>("no"), containerd: absent<never>("CRI-O"), netns: absent<never>("none") };

    expect(diagnose(snapshotOf({}, { ...without, cni: { ...cni, multus: absent("none") } }), AT_ONCE).verdict).toBe(
      "healthy",
    );
  });
});

describe("one finding per cause", () => {
  test("a sandbox with several faults gets the first class that explains it", () => {
    const { findings } = diagnosed({ ...ghost, multus: [scratchOf("a", "empty")] });

    expect(findings.map(({ id }) => id)).toEqual([`libcni-result-cache-corrupt/${idOf("a")}`]);
  });

  test("a failing removal takes precedence over a crash", () => {
    expect(named(diagnosed(ghost))).toEqual([`libcni-result-cache-corrupt/${idOf("a")}`]);
    expect(named(diagnosed({ ...ghost, results: [resultOf("a")] }))).toEqual([`dead-after-crash/${idOf("a")}`]);
  });

  test("the same cause on the same subject has the same id in every scan", () => {
    expect(named(diagnosed(ghost))).toEqual(named(diagnosed(ghost)));
  });
});

describe("class filters", () => {
  test.each([
    ["only this class", { only: ["libcni-result-cache-corrupt"] }, true],
    ["only another class", { only: ["shim-leak"] }, false],
    ["all but this class", { skip: ["libcni-result-cache-corrupt"] }, false],
    ["all but another class", { skip: ["shim-leak"] }, true],
    ["this class, and not", { only: ["libcni-result-cache-corrupt"], skip: ["libcni-result-cache-corrupt"] }, false],
  ])("%s", (_, asked, isFound) => {
    const { findings, kept } = diagnosed(ghost, { ...AT_ONCE, ...asked });

    expect(findings.map((finding) => finding.class)).toEqual(isFound ? ["libcni-result-cache-corrupt"] : []);
    // A ghost of an unselected class neither gets another class, nor disappears.
    expect(kept.map(({ reason }) => reason.code)).toEqual(isFound ? [] : ["class-not-selected"]);
  });
});

describe("kept sandboxes", () => {
  test("have a reason, for each NotReady sandbox that is not a finding", () => {
    const { kept, findings, dead } = diagnosed({
      sandboxes: [sandboxOf("a"), sandboxOf("b"), sandboxOf("c", { labels: { "unghost.dev/ignore": "true" } })],
      records: [recordOf("a"), recordOf("b"), recordOf("c")],
      containers: [containerOf("a", { exit: FINISHED })],
    });

    expect(findings).toEqual([]);
    expect(new Map(kept.map(({ sandboxId, reason }) => [sandboxId, reason.code]))).toEqual(
      new Map([
        [idOf("a"), "containers-finished"],
        [idOf("b"), "not-stuck"],
        [idOf("c"), "opted-out"],
      ]),
    );
    expect(dead.map(({ sandbox }) => sandbox.id)).toEqual([idOf("a"), idOf("b")]);
  });

  test("never include a finding", () => {
    const { kept, findings } = diagnosed({ ...ghost, sandboxes: [sandboxOf("a"), sandboxOf("b")] });

    const found = new Set(findings.map(({ subject }) => ("sandboxId" in subject ? subject.sandboxId : undefined)));
    expect(kept.map(({ sandboxId }) => sandboxId)).toEqual([idOf("b")]);
    expect(found).not.toContain(idOf("b"));
  });
});
