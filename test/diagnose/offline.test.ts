import { describe, expect, test } from "vitest";
import { classById } from "../../src/classes/index.ts";
import { diagnoseOffline, scanOffline } from "../../src/diagnose/offline.ts";
import { absent, failed, read } from "../../src/host/source.ts";
import type { ResultFile } from "../../src/node/types/cni.ts";
import { sandboxId } from "../../src/node/types/ids.ts";
import type { ProcessFacts, SandboxRecord } from "../../src/node/types/runtime.ts";
import type { MetadataFile, OfflineFacts, StoredContainer } from "../../src/node/types/snapshot.ts";
import { AT_ONCE } from "../support/snapshot-builder.ts";

const PATH = "/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db";
const CREATED = new Date("2026-01-02T03:04:05Z");
const NAME = "web_default_uid_0";

function facts(file: Partial<MetadataFile>, more: Partial<OfflineFacts> = {}): OfflineFacts {
  const nothing = {
    path: PATH,
    damage: [],
    isEmpty: false,
    records: [],
    sandboxes: [],
    leases: [],
    containerDirs: undefined,
  };
  return {
    observedAt: new Date(),
    boot: absent("not needed"),
    metadata: read({ ...nothing, ...file }),
    processes: read(processes()),
    cni: { results: read([]), hostLocal: read([]) },
    ...more,
  };
}

function processes(
  alive: { readonly shims?: readonly string[]; readonly cgroups?: readonly string[] } = {},
): ProcessFacts {
  const shims = (alive.shims ?? []).map((id, index) => ({
    id,
    pid: 100 + index,
    childPids: [],
    startedSecondsAfterBoot: 1,
    ageSeconds: 1,
  }));
  const byContainer = new Map((alive.cgroups ?? []).map((id, index) => [id, [200 + index]]));
  return { plugins: [], shims, byContainer, netnsInodes: new Set() };
}

function sandbox(id: string, name = NAME, hasCniResult = true): StoredContainer {
  const metadata = { name, netnsPath: "", hostNetwork: false, hasCniResult };
  return { id, kind: "sandbox", createdAt: CREATED, labels: {}, sandbox: metadata };
}

function container(id: string, name: string): StoredContainer {
  return { id, kind: "container", createdAt: CREATED, labels: {}, container: { name, sandboxId: "s" } };
}

function stored(id: string, name?: string): SandboxRecord {
  const record = { id, createdAt: CREATED, labels: {} };
  if (name === undefined) return record;
  return { ...record, sandbox: { name, netnsPath: "", hostNetwork: false, hasCniResult: false } };
}

function resultFile(id: string): ResultFile {
  const file = {
    path: `/results/${id}`,
    sandboxId: sandboxId(id),
    health: "ok",
    modifiedAt: CREATED,
    size: 1,
  } as const;
  return { ...file, network: "cbr0", interfaceName: "eth0" };
}

function idsOf(given: OfflineFacts): readonly string[] {
  return diagnoseOffline(given).map(({ id }) => id);
}

const RETURNING = `dead-after-crash/${PATH}`;

describe("two records of one sandbox name", () => {
  const pair = { records: [sandbox("one"), sandbox("two"), sandbox("three", "other_default_uid_0")] };

  test("are one critical finding that names both and blocks the start", () => {
    const [finding] = diagnoseOffline(facts(pair));
    expect(finding).toMatchObject({
      id: `recover-duplicate-sandbox-name/${NAME}`,
      severity: "critical",
      subject: { type: "record", name: NAME, pod: { namespace: "default", name: "web", uid: "uid", attempt: 0 } },
      blocks: ["the next start of the runtime"],
      treatment: { automatic: false },
      cure: [],
    });
    expect(finding?.evidence.map(({ fact }) => fact)).toEqual([
      "one, created 2026-01-02T03:04:05.000Z; no shim and no process carries its id",
      "two, created 2026-01-02T03:04:05.000Z; no shim and no process carries its id",
    ]);
  });

  test.each<readonly [string, OfflineFacts["processes"], RegExp]>([
    ["none is alive", read(processes()), /nothing of any of them lives/],
    ["one has a shim", read(processes({ shims: ["one"] })), /one of them lives and must stay/],
    ["one has a process", read(processes({ cgroups: ["two"] })), /one of them lives and must stay/],
    [
      "both are alive",
      read(processes({ shims: ["one"], cgroups: ["two"] })),
      /2 of them live: choose manually which one stays/,
    ],
    ["unknown", failed("no /proc"), /which of them lives is not known/],
  ])("are distinguished by their processes: %s", (_, given, expected) => {
    expect(diagnoseOffline(facts(pair, { processes: given }))[0]?.summary).toMatch(expected);
  });

  test("count only when both reserve the name: not from the sandbox store, and not the two stores of one id", () => {
    const given = facts({ records: [sandbox("one")], sandboxes: [stored("one", NAME), stored("half", NAME)] });
    expect(idsOf(given)).toEqual([RETURNING]);
  });

  test("without metadata, or of unknown kind, do not count", () => {
    const bare = { createdAt: CREATED, labels: {} };
    const records = [
      { ...bare, id: "one", kind: "sandbox" },
      { ...bare, id: "two", kind: "sandbox" },
      { ...bare, id: "three", kind: "other" },
    ] as const;
    expect(diagnoseOffline(facts({ records }))).toEqual([]);
  });
});

describe("two records of one container name", () => {
  const records = [container("one", "main_web_default_uid_0"), container("two", "main_web_default_uid_0")];

  test("are a separate finding", () => {
    const [finding, ...others] = diagnoseOffline(
      facts({ records }, { processes: read(processes({ cgroups: ["two"] })) }),
    );
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      id: "recover-duplicate-container-name/main_web_default_uid_0",
      subject: { type: "container" },
      summary: expect.stringContaining("one of them lives"),
    });
  });

  test.each([
    ["both", ["one", "two"], 1],
    ["one", ["one"], 0],
    ["neither", [], 0],
  ])("count only when they can be loaded: %s has its directory", (_, dirs, expected) => {
    expect(diagnoseOffline(facts({ records, containerDirs: new Set(dirs) }))).toHaveLength(expected);
  });
});

describe("a container without the record of its sandbox", () => {
  const SANDBOX = "a".repeat(64);
  const stray = { ...container("one", "main_web_default_uid_0"), container: { name: "main_x", sandboxId: SANDBOX } };
  const ID = "kubelet-blocked-by-orphan-container/one";

  test.each<readonly [string, Partial<MetadataFile>, readonly string[]]>([
    ["is found", {}, [ID]],
    ["is found if its directory exists", { containerDirs: new Set(["one"]) }, [ID]],
    ["is not loaded without its directory", { containerDirs: new Set() }, []],
    ["has a sandbox in the store of 2.x", { sandboxes: [stored(SANDBOX, NAME)] }, []],
    ["has a sandbox whose record has no metadata", { sandboxes: [stored(SANDBOX)] }, [ID]],
  ])("%s", (_, file, expected) => {
    const found = diagnoseOffline(facts({ records: [stray], ...file }));
    expect(found.map(({ id }) => id).filter((id) => id.startsWith("kubelet-"))).toEqual(expected);
  });

  test("is healed after the start only if nothing of it lives", () => {
    const healed = (alive: readonly string[]) =>
      classById("kubelet-blocked-by-orphan-container")?.healedAfterStart?.(
        facts({ records: [stray] }, { processes: read(processes({ cgroups: alive })) }),
      );
    expect([healed([]), healed(["one"])]).toEqual([["one"], []]);
  });
});

test("a broken status file of a stored container is named; one without a record is not loaded", () => {
  const modifiedAt = CREATED;
  const brokenStatusFiles = [
    { containerId: "one", path: "/c/one/status", health: "empty", modifiedAt },
    { containerId: "two", path: "/c/two/status", health: "corrupt", modifiedAt },
  ] as const;
  const found = diagnoseOffline(facts({ records: [container("one", "main_x")], brokenStatusFiles }));
  expect(found).toMatchObject([{ id: "container-status-lost//c/one/status", cure: [] }]);
});

describe("a stored sandbox without metadata", () => {
  const half = { sandboxes: [stored("half"), stored("whole", NAME)] };
  const ID = "recover-missing-metadata/half";

  test.each([
    ["2.0.5", "critical"],
    ["v2.1.3-k3s1", "critical"],
    ["2.0.6", undefined],
    ["2.3.1", undefined],
    ["1.7.0", undefined],
    ["no version", "warning"],
    [undefined, "warning"],
  ])("under containerd %s is %s", (containerdVersion, severity) => {
    const more = containerdVersion === undefined ? {} : { containerdVersion };
    const found = diagnoseOffline(facts(half, more)).find(({ id }) => id === ID);
    expect(found?.severity).toBe(severity);
    if (severity === "warning") expect(found?.summary).toContain("which version will be started is not known");
  });

  test("is skipped when a container record of its id is read first", () => {
    expect(idsOf(facts({ records: [sandbox("half")], sandboxes: [stored("half")] }))).not.toContain(ID);
  });
});

test("many duplicates are counted, those of live sandboxes listed first", () => {
  const records = Array.from({ length: 94 }, (_, index) => sandbox(`id-${index}`));
  const [finding] = diagnoseOffline(facts({ records }, { processes: read(processes({ shims: ["id-93"] })) }));
  expect(finding?.evidence[0]?.fact).toMatch(/^id-93, .* its shim is alive/);
  expect(finding?.evidence.at(-1)?.fact).toBe("and 84 more");
});

describe("a file with a failed consistency check", () => {
  test("is a critical finding with the offsets, and its other findings stay", () => {
    const damage = Array.from({ length: 12 }, (_, page) => ({ page, reason: "is of kind unknown" }));
    const found = diagnoseOffline(facts({ damage, records: [sandbox("one"), sandbox("two")] }));
    expect(found[0]).toMatchObject({ id: `bolt-corruption/${PATH}`, severity: "critical" });
    expect(found[0]?.evidence).toHaveLength(11);
    expect(found[0]?.evidence.at(-1)?.fact).toBe("and 2 more");
    expect(found[1]?.class).toBe("recover-duplicate-sandbox-name");
  });

  test("that is empty is reported with the consequence", () => {
    const found = diagnoseOffline(facts({ isEmpty: true }));
    expect(found).toMatchObject([{ class: "bolt-corruption", severity: "warning", blocks: [] }]);
  });
});

describe("sandboxes that come back after the start", () => {
  const many = Array.from({ length: 12 }, (_, index) => sandbox(`id-${index}`, `pod-${index}_default_uid_0`, false));

  test("are one finding with a count and names", () => {
    const found = diagnoseOffline(facts({ records: many }));
    expect(found).toMatchObject([{ id: RETURNING, severity: "warning" }]);
    expect(found[0]?.summary).toMatch(/^12 stored sandboxes are dead/);
    expect(found[0]?.evidence[0]?.fact).toMatch(/default\/pod-0, default\/pod-1, .* and 2 more$/);
  });

  test("do not include live sandboxes and orderly ended ones", () => {
    const records = [sandbox("alive", "a_default_uid_0"), sandbox("done", "b_default_uid_0")];
    expect(idsOf(facts({ records }, { processes: read(processes({ shims: ["alive"] })) }))).toEqual([]);
  });

  test("include those that still hold a network", () => {
    const cni = { results: read([resultFile("one")]), hostLocal: read([]) };
    const found = diagnoseOffline(facts({ records: [sandbox("one")] }, { cni }));
    expect(found[0]?.evidence.at(-1)?.fact).toBe("1 of them still hold an address or a cached result");
  });

  test("are not guessed when processes could not be read", () => {
    expect(idsOf(facts({ records: many }, { processes: failed("no /proc") }))).toEqual([]);
  });
});

test.each([absent<MetadataFile>("there is none"), failed<MetadataFile>("is busy")])(
  "a file that was not read ($status) is not a finding",
  (metadata) => {
    expect(diagnoseOffline(facts({}, { metadata }))).toEqual([]);
  },
);

test("a class that needs the runtime's answers is unknown offline, and the report says so", () => {
  const { diagnosis } = scanOffline(facts({}), { ...AT_ONCE, only: ["shim-leak"], node: "n" });

  expect(diagnosis.verdict).toBe("unknown");
  expect(diagnosis.notKnown).toEqual([expect.stringContaining("an offline scan does not show it")]);
  expect(scanOffline(facts({}), { ...AT_ONCE, only: ["dead-after-crash"], node: "n" }).diagnosis.verdict).toBe(
    "healthy",
  );
});
