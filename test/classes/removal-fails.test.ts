import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { absent, read } from "../../src/host/source.ts";
import type { FileHealth } from "../../src/node/types/cni.ts";
import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import {
  AT_ONCE,
  addressOf,
  containerOf,
  delErrorLine,
  FINISHED,
  idOf,
  MULTUS,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  scratchOf,
  snapshotOf,
  THICK_MULTUS,
} from "../support/snapshot-builder.ts";

const dead = { sandboxes: [sandboxOf("a")], records: [recordOf("a")] } as const;

describe("libcni-result-cache-corrupt", () => {
  const B1 = `libcni-result-cache-corrupt/${idOf("a")}`;

  test.each<readonly [FileHealth, boolean]>([
    ["empty", true],
    ["corrupt", true],
    ["ok", false],
    ["odd", false],
  ])("a dead sandbox's result that is %s: %s", (health, isFound) => {
    const file = resultOf("a", health);
    const { findings } = diagnosed({ ...dead, results: [file] });

    expect(named({ findings }).includes(B1)).toBe(isFound);
    if (isFound) {
      expect(findings).toHaveLength(1);
      expect(findings[0]).toMatchObject({
        subject: { path: file.path },
        cure: [{ kind: "quarantine-file", path: file.path, health }],
      });
    }
  });

  test("is one finding for all broken files of a sandbox", () => {
    const results = [resultOf("a", "empty"), { ...resultOf("a", "corrupt"), path: "/var/lib/cni/results/lo" }];

    const { findings } = diagnosed({ ...dead, results });
    expect(findings).toHaveLength(1);
    expect(findings[0]?.cure).toHaveLength(2);
  });

  test("also of a finished pod: its removal fails, but blocks nothing", () => {
    const { findings } = diagnosed({
      ...dead,
      containers: [containerOf("a", { exit: FINISHED })],
      results: [resultOf("a", "empty")],
    });

    expect(findings).toMatchObject([{ id: B1, blocks: [] }]);
  });

  test("not under containerd 2.x, unless multus' own libcni reads the file", () => {
    const runtimeVersion = "2.3.4";
    const own = resultOf("a", "empty", "/var/lib/cni/multus/results");

    expect(named(diagnosed({ ...dead, runtimeVersion, results: [resultOf("a", "empty")] }))).not.toContain(B1);
    expect(named(diagnosed({ ...dead, runtimeVersion, results: [own] }))).toEqual([B1]);
  });

  test.each<readonly [string, string, boolean]>([
    ["cri-o", "1.30.14", true],
    ["cri-o", "1.31.0", false],
    ["cri-o", "1.34.0", false],
    ["docker", "1.13.1", false],
  ])("under %s %s: %s", (runtimeName, runtimeVersion, isFound) => {
    const found = named(diagnosed({ ...dead, runtimeName, runtimeVersion, results: [resultOf("a", "empty")] }));

    expect(found.includes(B1)).toBe(isFound);
  });

  test("not of a running pod", () => {
    const sandboxes = [sandboxOf("a", { state: "ready" })];

    expect(named(diagnosed({ ...dead, sandboxes, results: [resultOf("a", "empty")] }))).toEqual([]);
  });
});

test.each<readonly [string, NodeParts]>([
  ["multus-cache-corrupt", { multus: [scratchOf("a", "empty")] }],
  ["multus-cache-corrupt", { multus: [scratchOf("a", "corrupt")] }],
  ["delegate-scratch-corrupt", { flannel: [scratchOf("a", "empty", "/var/lib/cni/flannel")] }],
])("%s is an invalid file of a dead sandbox", (expected, files) => {
  const { findings } = diagnosed({ ...dead, ...files });

  expect(findings).toMatchObject([{ id: `${expected}/${idOf("a")}`, cure: [{ kind: "quarantine-file" }] }]);
});

const NEVER_SET_UP: NodeParts = { records: [recordOf("a", { hasCniResult: false })], runtimeVersion: "2.1.7" };

test.each<readonly [string, NodeParts, string]>([
  ["a pod waits for its removal", {}, "critical"],
  ["its network was never set up, and the runtime ignores a failed DEL", NEVER_SET_UP, "warning"],
  ["an older runtime does not ignore it", { ...NEVER_SET_UP, runtimeVersion: "1.6.20" }, "critical"],
  [
    "its pod runs again",
    { sandboxes: [...(dead.sandboxes ?? []), sandboxOf("b", { uid: "a", attempt: 1, state: "ready" })] },
    "warning",
  ],
])("the severity of a torn multus cache when %s", (_, parts, severity) => {
  const { findings } = diagnosed({ ...dead, multus: [scratchOf("a", "empty")], ...parts });

  expect(findings).toMatchObject([{ class: "multus-cache-corrupt", severity }]);
});

describe("multus-cache-consumed-rebuilt-config", () => {
  const B3 = `multus-cache-consumed-rebuilt-config/${idOf("a")}`;
  const consumed: NodeParts = { ...dead, conf: MULTUS, results: [resultOf("a")] };

  test("is a network that is still up, without the cache for its teardown", () => {
    const { findings } = diagnosed(consumed);

    expect(findings).toMatchObject([
      { id: B3, cure: [{ kind: "multus-marker", sandboxId: idOf("a"), dir: "/var/lib/cni/multus" }] },
    ]);
  });

  test.each<readonly [string, NodeParts, boolean]>([
    ["the pod exists", { pods: ["a"] }, true],
    ["the pod is gone: multus then succeeds", { pods: [] }, false],
    ["the cache exists", { multus: [scratchOf("a")] }, false],
    ["the network is down already", { results: [] }, false],
    ["multus did not set it up", { conf: { ...MULTUS, network: "multus-cni-network" } }, false],
    ["the pod uses the host network", { records: [recordOf("a", { hostNetwork: true })] }, false],
    ["multus is not the node's network", { conf: {} }, false],
    ["multus is thick: its shim answers DEL with success", { conf: THICK_MULTUS }, false],
    ["unghost's marker exists", { multus: [{ ...scratchOf("a"), isMarker: true }] }, false],
  ])("%s: %o", (_, parts, isFound) => {
    expect(named(diagnosed({ ...consumed, ...parts })).includes(B3)).toBe(isFound);
  });
});

describe("a sandbox whose ADD never completed, with multus' cache consumed", () => {
  const B3 = `multus-cache-consumed-rebuilt-config/${idOf("a")}`;
  const logLines = [delErrorLine("a", 'plugin type="multus" name="multus-cni-network" failed (delete): DelegateDel')];
  const halfMade: NodeParts = { ...dead, conf: MULTUS, records: [recordOf("a", { hasCniResult: false })], logLines };

  test.each<readonly [string, NodeParts, boolean]>([
    ["containerd 1.6.20 requires DEL, and its removal failed", {}, true],
    ["no removal has failed yet", { logLines: [] }, false],
    ["containerd 1.6.37 skips DEL without a result", { runtimeVersion: "1.6.37" }, false],
    ["the pod is gone: multus then succeeds", { pods: [] }, false],
    ["the pod uses the host network", { records: [recordOf("a", { hasCniResult: false, hostNetwork: true })] }, false],
  ])("%s: %o", (_, parts, isFound) => {
    expect(named(diagnosed({ ...halfMade, ...parts })).includes(B3)).toBe(isFound);
  });
});

describe("multus-lossy-conflist", () => {
  const B4 = `multus-lossy-conflist/${idOf("a")}`;
  const stripped = { ...scratchOf("a"), strippedKeys: ["bridge", "server_socket"] };
  const lossy: NodeParts = { ...dead, conf: MULTUS, results: [resultOf("a")], multus: [stripped] };

  test("is a cache without a setting that the delegate requires for DEL", () => {
    const { findings } = diagnosed(lossy);

    expect(findings).toMatchObject([
      {
        id: B4,
        cure: [
          { kind: "quarantine-file", path: stripped.path, health: "stripped" },
          { kind: "multus-marker", sandboxId: idOf("a"), dir: "/var/lib/cni/multus" },
        ],
      },
    ]);
  });

  test.each<readonly [string, NodeParts, boolean]>([
    ["the pod is gone: the cache is still used", { pods: [] }, true],
    [
      "only settings are missing that DEL does not need",
      { multus: [{ ...stripped, strippedKeys: ["bridge"] }] },
      false,
    ],
    ["the network is down already", { results: [] }, false],
    ["ADD never completed: 1.6.20 calls DEL", { results: [], records: [recordOf("a", { hasCniResult: false })] }, true],
    [
      "ADD never completed: 1.6.37 skips DEL",
      { results: [], records: [recordOf("a", { hasCniResult: false })], runtimeVersion: "1.6.37" },
      false,
    ],
    ["multus is thick: its shim answers DEL with success", { conf: THICK_MULTUS }, false],
    ["the pod runs", { sandboxes: [sandboxOf("a", { state: "ready" })] }, false],
  ])("%s: %o", (_, parts, isFound) => {
    expect(named(diagnosed({ ...lossy, ...parts })).includes(B4)).toBe(isFound);
  });
});

describe("del-timeout-killed", () => {
  const plugins = [pluginFor("a", "DEL", 700)];

  test("is a DEL older than the grace period, and the only finding about its sandbox", () => {
    const { findings } = diagnosed({ ...dead, plugins, results: [resultOf("a")] }, PATIENT);

    expect(findings).toMatchObject([
      {
        id: "del-timeout-killed/pid-500",
        subject: { sandboxId: idOf("a") },
        cure: [{ kind: "end-process", pid: 500 }],
      },
    ]);
  });

  test("is not a DEL in progress: its sandbox is being torn down", () => {
    const { findings, kept } = diagnosed(
      { ...dead, plugins: [pluginFor("a", "DEL", 5)], results: [resultOf("a")] },
      PATIENT,
    );

    expect(findings).toEqual([]);
    expect(kept).toMatchObject([{ sandboxId: idOf("a"), reason: { code: "network-teardown-in-flight" } }]);
  });
});

describe("faults of the node's network", () => {
  const halfMade = { sandboxes: [sandboxOf("a", { createdAt: ZERO_TIME })] };
  const missing = {
    plugins: [
      { type: "bridge", binaryFound: true },
      { type: "tuning", binaryFound: false },
    ],
  };
  const notFound = (type: string, path: string) =>
    `time="2026-03-01T11:59:00Z" level=warning msg="Error validating CNI config file /etc/cni/net.d/10-lab.conflist: [failed to find plugin \\"${type}\\" in path [${path}]]"`;
  const notReady = [
    { type: "NetworkReady", status: false, reason: "NetworkPluginNotReady", message: "cni plugin not initialized" },
  ];

  test("chained-plugin-binary-missing names plugin and file, and what it blocks", () => {
    const { findings, kept } = diagnosed({
      ...halfMade,
      conf: missing,
      addresses: [addressOf("b", "10.88.0.9", 30), addressOf("c", "10.88.0.8")],
      logLines: [notFound("tuning", "/opt/cni/bin")],
    });

    expect(findings.map(({ id }) => id)).toEqual([
      "chained-plugin-binary-missing//etc/cni/net.d/10-lab.conflist",
      // Older than this boot: the missing plugin did not do that.
      "hostlocal-ip-leak-after-reboot//var/lib/cni/networks/cbr0/10.88.0.8",
    ]);
    expect(findings[0]?.subject).toMatchObject({ name: "tuning" });
    // Only the branch that is true on this node, with its names.
    expect(findings[0]?.treatment.steps).toEqual([
      expect.stringContaining("Install tuning into /opt/cni/bin: "),
      "Then stop and remove what is left over: unghost heal.",
    ]);
    expect(findings[0]?.blocks.at(-1)).toContain(idOf("a"));
    expect(findings[0]?.evidence.at(-1)?.fact).toContain("10.88.0.9");
    expect(findings[0]).not.toHaveProperty("explains");
    expect(kept).toEqual([]);
  });

  const B7 = "chained-plugin-binary-missing//etc/cni/net.d/10-lab.conflist";

  test.each<readonly [string, readonly string[], boolean]>([
    ["no log mentions it: it may be elsewhere", [], false],
    ["the runtime has searched the same directories", [notFound("tuning", "/opt/cni/bin/ /opt/cni/bin")], true],
    ["the runtime has searched other directories, too", [notFound("tuning", "/opt/cni/bin /usr/libexec/cni")], false],
    ["the runtime has searched another plugin", [notFound("bridge", "/opt/cni/bin")], false],
  ])("a missing plugin when the runtime does not report its directories, and %s", (_, logLines, isFound) => {
    const { findings } = diagnosed({ runtimeName: "cri-o", runtimeVersion: "1.34.0", conf: missing, logLines });

    expect(named({ findings })).toEqual(isFound ? [B7] : []);
    expect(findings.flatMap(({ evidence }) => evidence.map(({ source }) => source)).includes("logs")).toBe(isFound);
  });

  test("a plugin that is missing in the directories that the runtime reports needs no log", () => {
    const { cri, ...sources } = snapshotOf({ conf: missing });
    const cniDirs = { conf: "/etc/cni/net.d", bin: ["/opt/cni/bin"] };
    const reporting = { ...sources, cri: cri.status === "read" ? read({ ...cri.value, cniDirs }) : cri };

    expect(named(diagnose(reporting, AT_ONCE))).toEqual([B7]);
  });

  const snapshot = snapshotOf({ ...halfMade, conditions: notReady });

  test.each<readonly [string, Snapshot["cni"]["conf"], RegExp, RegExp]>([
    [
      "a configuration that the runtime has not loaded",
      snapshot.cni.conf,
      /rewrite it in place/,
      /^Rewrite the file in place.* > \/etc\/cni\/net\.d\/10-lab\.conflist$/,
    ],
    [
      "no configuration at all",
      absent("/etc/cni/net.d holds no network configuration"),
      /holds no network/,
      /^Bring the network add-on up on this node/,
    ],
  ])("cni-not-initialized reports %s", (_, conf, evidence, step) => {
    const { findings } = diagnose({ ...snapshot, cni: { ...snapshot.cni, conf } }, AT_ONCE);

    expect(findings.map(({ id }) => id)).toEqual(["cni-not-initialized/NetworkReady"]);
    expect(findings[0]?.evidence.at(-1)?.fact).toMatch(evidence);
    expect(findings[0]?.treatment.steps[0]).toMatch(step);
    expect(findings[0]?.treatment.steps).toHaveLength(2);
    expect(findings[0]?.blocks.at(-1)).toContain(idOf("a"));
  });

  test("nothing is found when the network is ready and every plugin exists", () => {
    const conditions = [{ type: "NetworkReady", status: true, reason: "", message: "" }];

    expect(named(diagnosed({ conditions }))).toEqual([]);
  });
});
