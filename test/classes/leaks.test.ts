import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { absent, failed, read } from "../../src/host/source.ts";
import type { NetnsEntry } from "../../src/node/types/cni.ts";
import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import {
  AT_ONCE,
  addressOf,
  ago,
  containerOf,
  idOf,
  MULTUS,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  scratchOf,
  shimOf,
  snapshotOf,
  THICK_MULTUS,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

describe("leaks of sandboxes that are gone", () => {
  const address = addressOf("a", "10.88.0.2");
  const C1 = `hostlocal-ip-leak-after-reboot/${address.path}`;

  test("an address, and with it every file of the same sandbox", () => {
    const files = [resultOf("a"), scratchOf("a"), scratchOf("a", "ok", "/var/lib/cni/flannel")] as const;
    const { findings } = diagnosed({
      addresses: [address],
      results: [files[0]],
      multus: [files[1]],
      flannel: [files[2]],
    });

    expect(findings.map(({ id }) => id)).toEqual([C1]);
    expect(findings[0]?.cure).toMatchObject([
      { kind: "release-addresses", sandboxId: idOf("a"), leases: [{ address: "10.88.0.2", interfaceName: "eth0" }] },
      ...files.map(({ path }) => ({ kind: "quarantine-file", path, health: "orphaned" })),
    ]);
  });

  test("two addresses of one sandbox are one finding", () => {
    const { findings } = diagnosed({ addresses: [address, addressOf("a", "fd00::2")] });

    expect(findings.map(({ id }) => id)).toEqual([C1]);
    expect(findings[0]?.summary).toContain("10.88.0.2, fd00::2");
  });

  test("files without an address are orphaned, one finding per sandbox", () => {
    const { findings } = diagnosed({ results: [resultOf("a", "empty")], multus: [scratchOf("a")] });

    expect(findings.map(({ id }) => id)).toEqual([`cni-cache-files-orphaned/${resultOf("a").path}`]);
    expect(findings[0]?.cure).toHaveLength(2);
  });

  test.each<readonly [string, NodeParts]>([
    ["listed", { sandboxes: [sandboxOf("a", { state: "ready" })] }],
    ["recorded", { records: [recordOf("a")] }],
    ["stored", { storeRecords: [{ id: idOf("a"), createdAt: ago(60), labels: {} }] }],
    ["being created", { plugins: [pluginFor("a", "ADD", 5)] }],
    ["with a shim in a container", { shims: [shimOf("a", 7)], processesOf: { [idOf("f")]: [7] } }],
    ["alive in another runtime", { processesOf: { [idOf("a")]: [42] } }],
    ["the id of a container", { containers: [containerOf("a", { state: "running" })] }],
  ])("nothing of a sandbox that is %s", (_, parts) => {
    const left = { addresses: [address], results: [resultOf("a")] };

    expect(named(diagnosed({ ...left, ...parts }, PATIENT))).toEqual([]);
  });

  test("nothing of other tools, whose ids have another format", () => {
    const nerdctl = { ...address, owner: { id: `default-${idOf("a")}`, interfaceName: "eth0" } };

    expect(named(diagnosed({ addresses: [nerdctl] }))).toEqual([]);
  });

  test.each<readonly [string, Partial<Snapshot>]>([
    ["the runtime's list", { cri: failed("no") }],
    ["the runtime's records", { containerd: failed("no") }],
    ["the processes", { processes: failed("no") }],
  ])("nothing while %s could not be read", (_, sources) => {
    const { findings, verdict } = diagnose(snapshotOf({ addresses: [address] }, sources), AT_ONCE);

    expect([findings, verdict]).toEqual([[], "unknown"]);
  });

  test.each<readonly [string, NodeParts, boolean]>([
    ["thick multus wrote while a creation may still be in flight", { conf: THICK_MULTUS }, false],
    ["thin multus wrote: its record would exist before", { conf: MULTUS }, true],
  ])("a recent result and cache file that %s", (_, parts, isFound) => {
    const modifiedAt = ago(60);
    const dir = "/var/lib/cni/multus";
    const delegates = { ...resultOf("a", "ok", `${dir}/results`), modifiedAt };
    const cache = { ...scratchOf("a", "ok", dir), modifiedAt };
    const orphan = `cni-cache-files-orphaned/${delegates.path}`;
    const young = { ...parts, runtimeVersion: "2.1.6", results: [delegates], multus: [cache] };
    const old = { ...young, results: [{ ...delegates, modifiedAt: ago(700) }], multus: [] };

    expect(named(diagnosed(young, PATIENT))).toEqual(isFound ? [orphan] : []);
    expect(named(diagnosed(old, PATIENT))).toEqual([orphan]);
  });

  test("only old ones when no record would show a creation in flight", () => {
    const young = [addressOf("a", "10.88.0.2", 30)];
    const old = [addressOf("a", "10.88.0.2", 700)];
    const sources = { containerd: absent<never>("CRI-O has none") };

    expect(named(diagnose(snapshotOf({ addresses: young }, sources), PATIENT))).toEqual([]);
    expect(named(diagnose(snapshotOf({ addresses: old }, sources), PATIENT))).toEqual([C1]);
  });

  const UP_SECONDS = 120;

  test.each<readonly [string, number, NodeParts, boolean]>([
    ["written well before this boot", 300, {}, true],
    ["written in this boot", UP_SECONDS - 1, {}, false],
    ["written so shortly before it that the clock may be wrong", UP_SECONDS + 30, {}, false],
    [
      "written before it, by a clock that also dates a live pod before it",
      300,
      { sandboxes: [sandboxOf("b", { state: "ready", createdSecondsAgo: 300 })] },
      false,
    ],
  ])("soon after a boot, and without records of creations, an address %s", (_, age, parts, isFound) => {
    const sources = {
      containerd: absent<never>("CRI-O has none"),
      boot: read({ id: "boot", uptimeSeconds: UP_SECONDS, startedAt: ago(UP_SECONDS) }),
    };
    const snapshot = snapshotOf({ ...parts, addresses: [addressOf("a", "10.88.0.2", age)] }, sources);

    expect(named(diagnose(snapshot, PATIENT))).toEqual(isFound ? [C1] : []);
    expect(named(diagnose({ ...snapshot, boot: failed("no") }, PATIENT))).toEqual([]);
  });

  test.each<readonly [string, NodeParts]>([
    ["an address", { addresses: [address] }],
    ["a file", { results: [resultOf("a")] }],
  ])("lists exactly the sources that were read about the owner of %s", (_, parts) => {
    const askedOf = (snapshot: Snapshot) =>
      diagnose(snapshot, AT_ONCE)
        .findings.flatMap(({ evidence }) => evidence.map(({ source }) => source))
        .filter((source) => source !== "cni");

    expect(askedOf(snapshotOf(parts))).toEqual(["cri", "containerd", "processes"]);
    expect(askedOf(snapshotOf(parts, { containerd: absent("CRI-O has none") }))).toEqual(["cri", "processes"]);
  });
});

describe("hostlocal-empty-ip-file", () => {
  function ownerless(modifiedSecondsAgo: number) {
    const { owner: _owner, ...lease } = addressOf("a", "10.88.0.3", modifiedSecondsAgo);
    return { ...lease, size: 0 };
  }

  test.each([
    ["written before this boot", UPTIME_SECONDS + 1, true],
    ["written long ago", 601, true],
    ["that may be an allocation in flight", 1, false],
  ])("a file without an owner %s", (_, age, isFound) => {
    const { findings } = diagnosed({ addresses: [ownerless(age)] }, PATIENT);

    expect(findings.map((finding) => finding.class)).toEqual(isFound ? ["hostlocal-empty-ip-file"] : []);
  });
});

describe("netns-and-veth-leak", () => {
  function entry(parts: Partial<NetnsEntry> = {}): NetnsEntry {
    return { path: "/run/netns/cni-x", name: "cni-x", inode: 77n, modifiedAt: ago(60), ...parts };
  }

  test.each<readonly [string, NodeParts, boolean]>([
    ["mounted and unused", { netns: [entry()] }, true],
    ["a regular file", { netns: [entry({ inode: undefined })] }, true],
    ["referenced by a record", { netns: [entry({ name: "cni-a" })], records: [recordOf("a")] }, false],
    ["used by a plugin", { netns: [entry({ name: "cni-a" })], plugins: [pluginFor("a", "ADD", 1)] }, false],
    ["used by a process", { netns: [entry()], netnsInodes: [77n] }, false],
    ["of another tool", { netns: [entry({ name: "netns-x" })] }, false],
    ["young", { netns: [entry({ modifiedAt: ago(5) })] }, false],
  ])("a namespace that is %s: %o", (_, parts, isFound) => {
    const { findings } = diagnosed(parts, PATIENT);

    expect(findings.map(({ id }) => id)).toEqual(isFound ? ["netns-and-veth-leak//run/netns/cni-x"] : []);
  });
});

describe("plugin-outlived-runtime", () => {
  const started = UPTIME_SECONDS - 100;
  const old = { ...pluginFor("a", "ADD", 200), holdsResultPipe: true } as const;
  const C14 = "plugin-outlived-runtime/pid-500";
  const restarted = snapshotOf().runtime;
  const found = (parts: NodeParts, startedSecondsAfterBoot = started, policy = PATIENT) =>
    diagnosed(parts, policy, { runtime: { ...restarted, process: { pid: 1, startedSecondsAfterBoot } } });

  test.each<readonly [string, NodeParts, readonly string[]]>([
    ["an ADD from before the runtime started", { plugins: [old] }, [C14]],
    ["with containerd 2, whose records come first", { plugins: [old], runtimeVersion: "2.1.5" }, [C14]],
    ["a DEL", { plugins: [{ ...old, cniCommand: "DEL" }] }, [C14]],
    [
      "its half-made sandbox exists",
      { plugins: [old], sandboxes: [sandboxOf("a", { createdSecondsAgo: 150 })] },
      [C14],
    ],
    ["of a call of this runtime", { plugins: [pluginFor("a", "ADD", 99)] }, []],
    ["of a daemon that a plugin started", { plugins: [pluginFor("a", "ADD", 200)], runtimeVersion: "2.1.5" }, []],
    ["of a delegate of thick multus", { plugins: [{ ...old, origin: "multus-daemon" }], runtimeVersion: "2.1.5" }, []],
    ["of another runtime's sandbox", { plugins: [{ ...old, origin: "cni-directory" }], runtimeVersion: "2.1.5" }, []],
    ["of a Ready sandbox", { plugins: [old], sandboxes: [sandboxOf("a", { state: "ready" })] }, []],
  ])("%s", (_, parts, expected) => {
    expect(named(found(parts))).toEqual(expected);
  });

  test("a runtime that has just started waits for its plugins", () => {
    expect(named(found({ plugins: [old] }, UPTIME_SECONDS - 29))).toEqual([]);
    expect(named(found({ plugins: [old] }, UPTIME_SECONDS - 30))).toEqual([C14]);
  });

  test("a ghost's evidence names it, and it is ended before the record goes", () => {
    const sandboxes = [sandboxOf("a", { createdAt: ZERO_TIME })];
    const diagnosis = found({ sandboxes, records: [recordOf("a")], plugins: [old] });

    expect(diagnosis.findings[0]?.evidence[1]?.fact).toBe(
      "no shim and no process carries its id, except for the CNI ADD in pid 500 (/opt/cni/bin/bridge)",
    );
    const [action] = planHealing(diagnosis, { ...PATIENT, allDead: false, cap: 10 }).actions;
    expect(action?.steps.map(({ kind }) => kind)).toEqual(["end-process", "remove-sandbox"]);
  });
});

describe("shim-leak", () => {
  const shims = [shimOf("a")];

  test.each<readonly [string, NodeParts, boolean]>([
    ["has no other trace", {}, true],
    ["only a task refers to", { tasks: [{ containerId: idOf("a"), pid: 701, status: "running" }] }, true],
    ["has processes of its own sandbox", { processesOf: { [idOf("a")]: [700, 701] } }, true],
    ["a record refers to", { records: [recordOf("a")] }, false],
    ["the 2.x store refers to", { storeRecords: [{ id: idOf("a"), createdAt: ago(60), labels: {} }] }, false],
    ["the runtime lists", { sandboxes: [sandboxOf("a")] }, false],
    ["belongs to a node inside a container", { processesOf: { [idOf("f")]: [700] } }, false],
  ])("a shim that %s: %o", (_, parts, isFound) => {
    expect(named(diagnosed({ shims, ...parts }))).toEqual(isFound ? ["shim-leak/pid-700"] : []);
  });
});

describe("snapshot-lease-leak", () => {
  test.each<readonly [string, NodeParts, boolean]>([
    ["of a sandbox that is gone", { leases: [{ id: idOf("a"), createdAt: ago(60) }] }, true],
    ["of a sandbox that exists", { leases: [{ id: idOf("a"), createdAt: ago(60) }], records: [recordOf("a")] }, false],
    [
      "of a creation in flight",
      { leases: [{ id: idOf("a"), createdAt: ago(60) }], plugins: [pluginFor("a", "ADD", 1)] },
      false,
    ],
    ["of an image pull", { leases: [{ id: "1234-pull", createdAt: ago(60) }] }, false],
    ["that is young", { leases: [{ id: idOf("a"), createdAt: ago(5) }] }, false],
  ])("a lease %s: %o", (_, parts, isFound) => {
    expect(named(diagnosed(parts, PATIENT))).toEqual(isFound ? [`snapshot-lease-leak/${idOf("a")}`] : []);
  });
});

describe("record-leak-after-late-failure", () => {
  const twins = [recordOf("a"), recordOf("b", { name: "pod-a_default_a_0" })];
  const C12 = `record-leak-after-late-failure/${idOf("b")}`;

  test("is the record under a reserved name that the runtime does not list", () => {
    const { findings } = diagnosed({ sandboxes: [sandboxOf("a", { state: "ready" })], records: twins });

    expect(findings).toMatchObject([{ id: C12, severity: "critical", subject: { pod: { name: "pod-a" } }, cure: [] }]);
  });

  test("is each of them when the runtime lists none", () => {
    expect(named(diagnosed({ records: twins }))).toHaveLength(2);
  });

  test("is not one record in both stores of a 2.x, nor one that is being created", () => {
    const twice = { ...recordOf("a"), createdAt: ago(60) };

    expect(named(diagnosed({ records: [recordOf("a")], storeRecords: [twice] }))).toEqual([]);
    const sandboxes = [sandboxOf("a", { state: "ready" })];
    expect(named(diagnosed({ sandboxes, records: twins, plugins: [pluginFor("b", "ADD", 5)] }, PATIENT))).toEqual([]);
  });
});
