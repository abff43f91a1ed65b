import { describe, expect, test } from "vitest";
import { renderBefore } from "../../src/doctor/render-before.ts";
import { beforeRestart, RESTARTS, type Restart, type RestartFacts } from "../../src/doctor/restart.ts";
import type { Finding } from "../../src/evidence/finding.ts";
import { absent, failed, read } from "../../src/host/source.ts";
import type { StaticManifest } from "../../src/node/types/snapshot.ts";
import { NOW, resultOf, sandboxOf, scratchOf, snapshotOf } from "../support/snapshot-builder.ts";

const HEALTHY_CNI = snapshotOf({}).cni;

function factsOf(changes: Partial<RestartFacts> = {}, version = "1.6.20"): RestartFacts {
  return {
    snapshot: snapshotOf({ runtimeVersion: version }),
    metadata: absent("no containerd"),
    present: [],
    stored: [],
    nextVersion: version,
    unparsable: [],
    binDirs: [],
    confFiles: [],
    shim: [],
    full: [],
    emptyManifests: [],
    otherManifestsUnread: false,
    bootHook: true,
    ...changes,
  };
}

function withSnapshot(sources: Parameters<typeof snapshotOf>[1], parts: Parameters<typeof snapshotOf>[0] = {}) {
  return factsOf({ snapshot: snapshotOf(parts, sources) });
}

/** The answer for each restart, and the first reason. */
function answers(facts: RestartFacts): readonly string[] {
  return RESTARTS.map((restart) => {
    const { survives, hazards } = beforeRestart(restart, facts);
    const [first] = hazards;
    return survives === "yes" ? "yes" : `${survives}: ${first?.id}`;
  });
}

const YES = ["yes", "yes", "yes"];
const DUPLICATE: Pick<Finding, "class" | "summary" | "blocks"> = {
  class: "duplicate-sandbox-name",
  summary: "2 records carry one name",
  blocks: ["the next start of the runtime"],
};
const STATIC = { "kubernetes.io/config.source": "file" };
const manifest = (name: string): StaticManifest => ({
  path: `/m/${name}.yaml`,
  name,
  namespace: "kube-system",
  modifiedAt: NOW,
});
const { pod, ...sandbox } = sandboxOf("a", { annotations: STATIC });
const apiServer = {
  ...sandbox,
  pod: { ...pod, namespace: "kube-system", name: "kube-apiserver-node-1" },
  state: "ready",
} as const;
const bin = { file: "/etc/containerd/config.toml", single: "/opt/other", list: [] };

test("a healthy node survives each restart, with and without a boot hook", () => {
  expect(answers(factsOf())).toEqual(YES);
  expect(answers(factsOf({ bootHook: false }))).toEqual(YES);
});

describe("reboot, restart of the runtime, restart of the network", () => {
  test.each<[string, RestartFacts, readonly string[]]>([
    [
      "duplicate records",
      factsOf({ stored: [DUPLICATE as Finding] }),
      ["no: duplicate-sandbox-name", "no: duplicate-sandbox-name", "yes"],
    ],
    [
      "dead records that only come back",
      factsOf({ stored: [{ ...DUPLICATE, blocks: [] } as unknown as Finding] }),
      YES,
    ],
    [
      "a database that was not read",
      factsOf({ metadata: failed("it changes all the time") }),
      ["unknown: runtime database", "unknown: runtime database", "yes"],
    ],
    [
      "a broken configuration",
      factsOf({ unparsable: [{ file: "/etc/containerd/config.toml", problem: "line 3" }] }),
      ["no: runtime configuration", "no: runtime configuration", "yes"],
    ],
    ["a full disk", factsOf({ full: ["/var/lib/containerd: 0 KiB are free"] }), ["no: disk", "no: disk", "yes"]],
    [
      "bin_dir, and 2.4 is next",
      factsOf({ binDirs: [bin] }, "2.4.0"),
      ["no: containerd bin_dir", "no: containerd bin_dir", "yes"],
    ],
    ["bin_dir, and 2.3 is next", factsOf({ binDirs: [bin] }, "2.3.4"), YES],
    ["bin_dir and bin_dirs", factsOf({ binDirs: [{ ...bin, list: ["/opt/other"] }] }, "2.4.0"), YES],
    [
      "bin_dir, and the program was replaced by an unknown one",
      factsOf({ binDirs: [bin], nextVersion: undefined }, "2.3.4"),
      ["unknown: containerd bin_dir", "unknown: containerd bin_dir", "yes"],
    ],
    [
      "another shim than the daemon's",
      factsOf({ shim: [{ id: "multus shim and daemon", detail: "", end: "" }] }),
      RESTARTS.map(() => "no: multus shim and daemon"),
    ],
    [
      "a plugin without a program",
      withSnapshot({}, { conf: { plugins: [{ type: "calico", binaryFound: false }] } }),
      RESTARTS.map(() => "no: cni plugins"),
    ],
    [
      "no network configuration",
      withSnapshot({ cni: { ...HEALTHY_CNI, conf: absent("the directory is empty") } }),
      RESTARTS.map(() => "no: cni configuration"),
    ],
    [
      "a runtime that does not answer",
      withSnapshot({ cri: failed("timeout") }),
      RESTARTS.map(() => "unknown: runtime"),
    ],
  ])("%s", (_what, facts, expected) => {
    expect(answers(facts)).toEqual(expected);
  });

  const torn = { results: read([resultOf("a", "empty")]) };
  const tornCni = { ...HEALTHY_CNI, ...torn };

  test("a torn result stops a reboot where its runtime stumbles over it and no hook moves it away", () => {
    const facts = withSnapshot({ cni: tornCni });

    expect(answers({ ...facts, bootHook: false })).toEqual(["no: torn files", "yes", "yes"]);
    expect(answers(facts)).toEqual(YES);
    expect(answers({ ...facts, bootHook: false, nextVersion: "2.1.6" })).toEqual(YES);
  });

  test("a torn file of multus or flannel stops a reboot; unghost's own marker does not", () => {
    const flannel = withSnapshot({
      cni: { ...HEALTHY_CNI, flannel: read([scratchOf("a", "corrupt", "/run/flannel")]) },
    });
    const marker = { ...scratchOf("a", "corrupt"), isMarker: true } as const;
    const marked = withSnapshot({
      cni: { ...HEALTHY_CNI, multus: read({ dir: "/var/lib/cni/multus", files: [marker] }) },
    });

    expect(answers({ ...flannel, bootHook: false })[0]).toBe("no: torn files");
    expect(answers({ ...marked, bootHook: false })).toEqual(YES);
  });

  test("a static pod that runs and has no file does not come back", () => {
    const found = (...names: readonly string[]) =>
      withSnapshot({ staticManifests: read(names.map(manifest)) }, { sandboxes: [apiServer] });

    expect(answers(found("kube-apiserver"))).toEqual(YES);
    expect(answers(found("etcd"))).toEqual(["no: static pods", "yes", "yes"]);
    expect(answers({ ...found("etcd"), otherManifestsUnread: true })[0]).toBe("unknown: static pods");
    expect(answers({ ...found("kube-apiserver"), emptyManifests: ["/m/etcd.yaml"] })[0]).toBe("no: static pods");
  });
});

test("a reason that stops comes before what is not known", () => {
  const facts = factsOf({ metadata: failed("busy"), unparsable: [{ file: "/c", problem: "line 1" }] });

  const { survives, hazards } = beforeRestart("runtime" satisfies Restart, facts);

  expect([survives, hazards.map(({ level }) => level)]).toEqual(["no", ["stops", "unknown"]]);
});

test("what a scan finds now is counted beside the answer, which is about the restart", () => {
  const before = beforeRestart("reboot", factsOf({ present: [DUPLICATE as Finding] }));

  expect([before.survives, before.findings]).toEqual(["yes", 1]);
  expect(renderBefore(before, "n1", { colour: false, columns: 80, verbose: false })).toContain(
    "1 finding on the node now, with or without it: unghost scan",
  );
});
