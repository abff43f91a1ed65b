import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DEFAULT_WAITS } from "../../../src/heal/proof/fresh-facts.ts";
import {
  findReference,
  ProofLost,
  proveDead,
  proveStillDead,
  proveStray,
  stillReferenced,
} from "../../../src/heal/proof/prove.ts";
import { failed } from "../../../src/host/source.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { ContainerState, PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { idOf, pluginFor, recordOf, shimOf } from "../../support/snapshot-builder.ts";
import { criContainer, criSandbox, type FakeNode, fakeTools } from "../fake-node.ts";
import { type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const ID = idOf("a");
const DEAD: FakeNode = { sandboxes: [criSandbox(ID)], containers: [criContainer(ID)] };
const unanswered = new RuntimeError("deadline", "Tasks/List", "/run/fake.sock", "no answer");
const CONTAINER_ID = criContainer(ID).id;

let fixture: HealFixture;
beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(() => fixture.remove());

describe("proveDead", () => {
  test("a sandbox without any sign of life is dead, and its containers are returned", async () => {
    expect(await proveDead(ID, fakeTools(fixture, DEAD))).toEqual({ state: "dead", containerIds: [CONTAINER_ID] });
  });

  test("a sandbox that neither list nor status returns is gone", async () => {
    expect(await proveDead(ID, fakeTools(fixture))).toEqual({ state: "gone" });
  });

  test("a sandbox that is missing from the list but Ready in its status is alive", async () => {
    const cri = { podSandboxState: () => Promise.resolve(PodSandboxState.SANDBOX_READY) };
    expect(await proveDead(ID, fakeTools(fixture, { cri }))).toMatchObject({
      liveness: { found: [{ sign: "ready" }] },
    });
  });

  test("the status call has a timeout", async () => {
    const deadlines: number[] = [];
    const cri: FakeNode["cri"] = {
      podSandboxState: (_id, { timeoutMs }) => {
        deadlines.push(timeoutMs);
        return Promise.resolve(undefined);
      },
    };
    await proveDead(ID, fakeTools(fixture, { cri }));
    expect(deadlines).toEqual([DEFAULT_WAITS.queryMs]);
  });

  test.each([
    [{ name: "main" }, "main"],
    [undefined, CONTAINER_ID],
  ])("returns the running container: %j", async (metadata, name) => {
    const running = criContainer(ID, { state: ContainerState.CONTAINER_RUNNING, metadata });
    const proof = await proveDead(ID, fakeTools(fixture, { ...DEAD, containers: [running] }));
    expect(proof).toMatchObject({ liveness: { found: [{ sign: "container", name }] } });
  });

  test("rethrows an error that is not an answer of the runtime", async () => {
    const tools = fakeTools(fixture, { ...DEAD, tasks: new TypeError("a mistake") });
    await expect(proveDead(ID, tools)).rejects.toThrow("a mistake");
  });

  test.each<readonly [string, FakeNode]>([
    ["ready", { sandboxes: [criSandbox(ID, { state: PodSandboxState.SANDBOX_READY })] }],
    ["container", { containers: [criContainer(ID, { state: ContainerState.CONTAINER_RUNNING })] }],
    ["task", { tasks: [{ containerId: ID, pid: 9, status: "running" }] }],
    ["task", { tasks: [{ containerId: CONTAINER_ID, pid: 9, status: "running" }] }],
    ["shim", { processes: { shims: [shimOf("a")] } }],
    ["process", { processes: { byContainer: new Map([[ID, [42]]]) } }],
    ["process", { processes: { byContainer: new Map([[CONTAINER_ID, [42]]]) } }],
  ])("refuses because of a sign of life: %s", async (sign, life) => {
    const proof = await proveDead(ID, fakeTools(fixture, { ...DEAD, ...life }));
    expect(proof).toMatchObject({ state: "not-dead", liveness: { state: "alive", found: [{ sign }] } });
  });

  test.each<readonly [string, FakeNode, readonly string[]]>([
    ["the process table", { processes: failed("no /proc") }, ["shim", "process"]],
    ["containerd's tasks", { tasks: unanswered }, ["task"]],
  ])("refuses when %s cannot be read", async (_, unread, signs) => {
    const proof = await proveDead(ID, fakeTools(fixture, { ...DEAD, ...unread }));
    expect(proof).toMatchObject({ state: "not-dead", liveness: { state: "unproven", unread: signs } });
  });

  test("does not read tasks on CRI-O", async () => {
    const node = { ...DEAD, containerdFacts: undefined };
    expect((await proveDead(ID, fakeTools(fixture, node))).state).toBe("dead");
  });
});

describe("proveStillDead", () => {
  test("returns the containers of a dead sandbox, and none of one that is gone", async () => {
    expect(await proveStillDead(ID, fakeTools(fixture, DEAD))).toEqual([CONTAINER_ID]);
    expect(await proveStillDead(ID, fakeTools(fixture))).toEqual([]);
  });

  test("throws the reason when the sandbox became Ready", async () => {
    const ready = { sandboxes: [criSandbox(ID, { state: PodSandboxState.SANDBOX_READY })] };

    const error: unknown = await proveStillDead(ID, fakeTools(fixture, ready)).catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(ProofLost);
    expect(error).toMatchObject({
      message: "not-dead",
      reason: { code: "not-dead", text: "not dead any more: it is Ready" },
    });
  });
});

describe("proveStray: a container without its sandbox", () => {
  const STRAY = { containerId: CONTAINER_ID, sandboxId: ID };
  const LEFT: FakeNode = { containers: [criContainer(ID)] };

  test("is dead without a sign of life, and returned with what has the same sandbox", async () => {
    expect(await proveStray(STRAY, fakeTools(fixture, LEFT))).toEqual({ state: "dead", containerIds: [CONTAINER_ID] });
  });

  test("is gone when only others of its sandbox are left", async () => {
    const others = [criContainer(ID, { id: "d".repeat(64) })];
    expect(await proveStray(STRAY, fakeTools(fixture, { containers: others }))).toEqual({ state: "gone" });
  });

  test("is not gone as long as another of its sandbox runs", async () => {
    const running = criContainer(ID, { id: "d".repeat(64), state: ContainerState.CONTAINER_RUNNING });
    const proof = await proveStray(STRAY, fakeTools(fixture, { containers: [running] }));
    expect(proof).toMatchObject({ state: "not-dead", liveness: { found: [{ sign: "container" }] } });
  });

  test("is left alone when the runtime lists its sandbox", async () => {
    const cri: FakeNode["cri"] = { podSandboxState: () => Promise.reject(new TypeError("was listed")) };
    const listed = { ...LEFT, sandboxes: [criSandbox(ID)], cri };
    expect(await proveStray(STRAY, fakeTools(fixture, listed))).toEqual({ state: "sandbox-listed" });
  });

  test("is left alone when only the status has its sandbox, which is asked with a timeout", async () => {
    const deadlines: number[] = [];
    const cri: FakeNode["cri"] = {
      podSandboxState: (_id, { timeoutMs }) => {
        deadlines.push(timeoutMs);
        return Promise.resolve(PodSandboxState.SANDBOX_NOTREADY);
      },
    };
    expect(await proveStray(STRAY, fakeTools(fixture, { ...LEFT, cri }))).toEqual({ state: "sandbox-listed" });
    expect(deadlines).toEqual([DEFAULT_WAITS.queryMs]);
  });
});

describe("findReference", () => {
  test("an id without a reference is a leak", async () => {
    const others = { records: [recordOf("b")], sandboxes: [recordOf("b")] };
    const processes = { shims: [shimOf("b")], plugins: [pluginFor("b", "DEL", 1)], othersIds: new Set([idOf("b")]) };
    const node = { sandboxes: [criSandbox(idOf("b"))], containerdFacts: others, processes };
    expect(await findReference(ID, fakeTools(fixture, node))).toBeUndefined();
  });

  test.each<readonly [string, FakeNode]>([
    ["runtime-list", { sandboxes: [criSandbox(ID)] }],
    ["containerd-record", { containerdFacts: { records: [recordOf("a")] } }],
    ["sandbox-store", { containerdFacts: { sandboxes: [recordOf("a")] } }],
    ["processes-unread", { processes: failed("no /proc") }],
    ["shim", { processes: { shims: [shimOf("a")] } }],
    ["plugin", { processes: { plugins: [pluginFor("a", "DEL", 1)] } }],
    ["other-runtime", { processes: { othersIds: new Set([ID]) } }],
    ["process", { processes: { byContainer: new Map([[ID, [42]]]) } }],
  ])("finds %s", async (reference, node) => {
    expect(await findReference(ID, fakeTools(fixture, node))).toBe(reference);
  });

  test("a reference is a reason not to touch what is left", () => {
    expect(stillReferenced("shim")).toEqual({ code: "still-referenced", text: "not left behind: a shim carries it" });
  });

  test("does not read containerd records on CRI-O", async () => {
    expect(await findReference(ID, fakeTools(fixture, { containerdFacts: undefined }))).toBeUndefined();
  });

  test("reads again when the last read was before the sandbox was removed", async () => {
    const tools = fakeTools(fixture);
    let isStale = true;
    const facts = {
      ...tools.facts,
      sandbox: () => Promise.resolve(isStale ? criSandbox(ID) : undefined),
      renew: () => {
        isStale = false;
      },
    };
    expect(await findReference(ID, { ...tools, facts })).toBeUndefined();
  });

  test.each([
    [0, undefined, 0],
    [1, undefined, 0],
    [4, undefined, 300],
    [100, "plugin", 500],
  ])("a plugin that runs for %d more reads: %j after %d ms", async (readings, found, waited) => {
    const slept: number[] = [];
    let left = readings;
    const { facts, waits } = fakeTools(fixture);
    const tools = {
      facts: {
        ...facts,
        processes: () => {
          const plugins = left-- > 0 ? [pluginFor("a", "DEL", 1)] : [];
          return fakeTools(fixture, { processes: { plugins } }).facts.processes();
        },
      },
      waits: { ...waits, pluginMs: 500 },
      sleep: (milliseconds: number) => Promise.resolve(slept.push(milliseconds)),
    };

    expect(await findReference(ID, tools)).toBe(found);
    expect(slept.reduce((sum, one) => sum + one, 0)).toBe(waited);
  });
});
