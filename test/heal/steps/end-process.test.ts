import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { endProcess } from "../../../src/heal/steps/processes.ts";
import type { StepTools } from "../../../src/heal/steps/step-result.ts";
import { parseStat } from "../../../src/host/proc.ts";
import { failed } from "../../../src/host/source.ts";
import type { ContainerdFacts, PluginProcess, ShimProcess } from "../../../src/node/types/runtime.ts";
import { PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { idOf, pluginFor, recordOf, shimOf } from "../../support/snapshot-builder.ts";
import { criSandbox, type FakeNode, type FakeProcesses, fakeTools, journalOf } from "../fake-node.ts";
import { FINDING, type HealFixture, makeHealFixture } from "../heal-fixture.ts";

const ID = idOf("a");
const READY = { state: PodSandboxState.SANDBOX_READY };

let fixture: HealFixture;
const children: ChildProcess[] = [];

beforeEach(async () => {
  fixture = await makeHealFixture();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await fixture.remove();
});

interface Started {
  readonly pid: number;
  readonly startedSecondsAfterBoot: number;
  readonly isAlive: () => boolean;
}

/** A child process; with `deaf` one that only SIGKILL ends. */
async function start(deaf = false): Promise<Started> {
  const script = deaf ? "trap '' TERM; echo ready; while :; do sleep 0.05; done" : "echo ready; exec sleep 600";
  const child = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "ignore"] });
  children.push(child);
  await once(child.stdout, "data");
  const pid = child.pid ?? 0;
  const stat = parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
  const isAlive = (): boolean => child.exitCode === null && child.signalCode === null;
  return { pid, startedSecondsAfterBoot: stat?.startedSecondsAfterBoot ?? 0, isAlive };
}

function plugin(of: Started, more: Partial<PluginProcess> = {}): PluginProcess {
  const { pid, startedSecondsAfterBoot } = of;
  return { ...pluginFor("a", "ADD", 600), pid, startedSecondsAfterBoot, ...more };
}

function shim({ pid, startedSecondsAfterBoot }: Started, more: Partial<ShimProcess> = {}): ShimProcess {
  return { ...shimOf("a"), pid, startedSecondsAfterBoot, ...more };
}

function stepFor({ pid, startedSecondsAfterBoot }: Omit<Started, "isAlive">) {
  return { kind: "end-process", pid, startedSecondsAfterBoot, sandboxId: ID } as const;
}

function toolsFor(node: FakeNode): StepTools {
  const tools = fakeTools(fixture, { ...node, tools: { sleep, ...node.tools } });
  return { ...tools, waits: { ...tools.waits, termMs: 500, rollbackMs: 30_000 } };
}

/** The process table without ended processes. */
function living(plugins: readonly (readonly [Started, PluginProcess])[]): () => FakeProcesses {
  return () => ({ plugins: plugins.filter(([started]) => started.isAlive()).map(([, one]) => one) });
}

describe("end-process refuses", () => {
  test.each<readonly [string, string, (started: Started) => FakeNode]>([
    ["its sandbox is Ready", "sandbox-ready", () => ({ sandboxes: [criSandbox(ID, READY)] })],
    ["the process table cannot be read", "processes-unread", () => ({ processes: failed("no /proc") })],
    ["/proc is another pid namespace's", "foreign-pid-namespace", () => ({ tools: { hostRoot: fixture.caches } })],
    [
      "it is a shim with more child processes than pause",
      "shim-has-children",
      (started) => ({ processes: { shims: [shim(started, { childPids: [7, 8] })] } }),
    ],
  ])("when %s", async (_, code, node) => {
    const started = await start();
    const processes = { plugins: [plugin(started)] };

    const { result, history } = await journalOf(
      fixture,
      endProcess(stepFor(started), FINDING, toolsFor({ processes, ...node(started) })),
    );

    expect([result, history, started.isAlive()]).toMatchObject([{ kind: "refused", code }, [], true]);
  });

  test.each<readonly [string, (started: Started) => FakeProcesses]>([
    ["its pid is not in use", () => ({})],
    ["its pid belongs to another process now", (of) => ({ plugins: [plugin(of, { startedSecondsAfterBoot: 1 })] })],
    ["another process started at the same moment", (of) => ({ plugins: [plugin(of, { pid: of.pid + 1 })] })],
    ["it works on another sandbox", (of) => ({ plugins: [plugin(of, { sandboxId: idOf("b") })] })],
    ["it is another sandbox's shim", (of) => ({ shims: [shim(of, { id: idOf("b") })] })],
  ])("when %s", async (_, processes) => {
    const started = await start();

    const result = await endProcess(stepFor(started), FINDING, toolsFor({ processes: processes(started) }));

    expect([result, started.isAlive()]).toEqual([{ kind: "unneeded" }, true]);
  });
});

describe("end-process", () => {
  test("ends the process with SIGTERM, and journals it", async () => {
    const started = await start();
    // Another sandbox may be Ready, but not its own.
    const sandboxes = [criSandbox(idOf("b"), READY), criSandbox(ID)];
    const cri = { listPodSandbox: () => Promise.resolve(sandboxes) };

    const { result, history } = await journalOf(
      fixture,
      endProcess(
        stepFor(started),
        FINDING,
        toolsFor({ sandboxes, cri, processes: living([[started, plugin(started)]]) }),
      ),
    );

    expect([result.kind, started.isAlive(), children[0]?.signalCode]).toEqual(["done", false, "SIGTERM"]);
    expect(history).toMatchObject([{ action: { kind: "end-process", pid: started.pid }, outcome: "healed" }]);
  });

  test("sends SIGKILL when SIGTERM has no effect", async () => {
    const deaf = await start(true);

    const result = await endProcess(stepFor(deaf), FINDING, toolsFor({ processes: living([[deaf, plugin(deaf)]]) }));

    expect([result.kind, children[0]?.signalCode]).toEqual(["done", "SIGKILL"]);
  });

  test("ends child processes started within moments, and not a later one of a retry", async () => {
    const [parent, child, retry] = [await start(), await start(), await start()];
    const began = parent.startedSecondsAfterBoot;
    const young = plugin(retry, { startedSecondsAfterBoot: began + 6 });
    const processes = living([
      [parent, plugin(parent)],
      [child, plugin(child)],
      [retry, young],
    ]);

    const result = await endProcess(stepFor(parent), FINDING, toolsFor({ processes }));

    expect([result.kind, parent.isAlive(), child.isAlive(), retry.isAlive()]).toEqual(["done", false, false, true]);
  });

  test("ends a shim that has only pause below it, and waits for what pause leaves", async () => {
    const started = await start();
    let reads = 0;
    const processes = () => {
      if (started.isAlive()) return { shims: [shim(started)] };
      reads += 1;
      return reads < 4 ? { byContainer: new Map([[ID, [7]]]) } : {};
    };

    const result = await endProcess(stepFor(started), FINDING, toolsFor({ processes }));

    expect([result.kind, started.isAlive(), reads]).toEqual(["done", false, 4]);
  });

  test("waits for the shim that containerd starts to clean up, and for no other", async () => {
    const started = await start();
    let reads = 0;
    const cleaner = { ...shimOf("a"), pid: 2 ** 22 - 1 };
    const other = { ...shimOf("b"), pid: 2 ** 22 - 2 };
    const processes = () => {
      if (started.isAlive()) return { shims: [shim(started), other] };
      reads += 1;
      return { shims: reads < 4 ? [cleaner, other] : [other], byContainer: new Map([[idOf("b"), [7]]]) };
    };

    const result = await endProcess(stepFor(started), FINDING, toolsFor({ processes }));

    expect([result.kind, reads]).toEqual(["done", 4]);
  });

  test("does not wait after a shim while the process table cannot be read", async () => {
    const started = await start();
    let reads = 0;
    const processes = () => {
      if (started.isAlive()) return { shims: [shim(started)] };
      reads += 1;
      return reads === 1 ? {} : failed<never>("no /proc");
    };

    expect((await endProcess(stepFor(started), FINDING, toolsFor({ processes }))).kind).toBe("done");
  });

  test.each([
    [5, "failed"],
    [5.01, "done"],
  ])("a plugin that started %d s later belongs to the process: %s", async (later, kind) => {
    const started = await start();
    const younger = plugin(started, {
      pid: 2 ** 22 - 1,
      startedSecondsAfterBoot: started.startedSecondsAfterBoot + later,
    });
    const processes = () => ({ plugins: [...(started.isAlive() ? [plugin(started)] : []), younger] });

    expect((await endProcess(stepFor(started), FINDING, toolsFor({ processes }))).kind).toBe(kind);
  });

  test("reports the process as stuck when it stays in the process table", async () => {
    const started = await start();

    const { result, history } = await journalOf(
      fixture,
      endProcess(stepFor(started), FINDING, toolsFor({ processes: { plugins: [plugin(started)] } })),
    );

    expect(result).toMatchObject({ kind: "failed", code: "process-unkillable" });
    expect(history).toMatchObject([{ outcome: "failed" }]);
  });

  test("does not report an end while the process table cannot be read", async () => {
    const started = await start();
    let reads = 0;
    const processes = () => (reads++ === 0 ? { plugins: [plugin(started)] } : failed<never>("no /proc"));

    const result = await endProcess(stepFor(started), FINDING, toolsFor({ processes }));

    expect(result).toMatchObject({ kind: "failed", code: "process-unkillable" });
  });
});

describe("end-process sends no signal", () => {
  afterEach(() => void vi.restoreAllMocks());

  /** Ends a process while kill(2) is replaced; the process table shows it until then. */
  async function signalled(step: Omit<Started, "isAlive">, kill: () => true, processes: () => FakeProcesses) {
    const sent = vi.spyOn(process, "kill").mockImplementation(kill);
    const result = await endProcess(stepFor(step), FINDING, toolsFor({ processes }));
    return { result, sent: sent.mock.calls };
  }

  test("to process 1, whatever the process table shows", async () => {
    const stat = parseStat(readFileSync("/proc/1/stat", "utf8"));
    const init = { pid: 1, startedSecondsAfterBoot: stat?.startedSecondsAfterBoot ?? 0 };
    const processes = () => ({ plugins: [{ ...pluginFor("a", "ADD", 600), ...init }] });

    const { result, sent } = await signalled(init, () => true, processes);

    expect([result, sent]).toMatchObject([{ kind: "failed", code: "process-unkillable" }, []]);
  });

  test("to a process with the same pid and another start time", async () => {
    const started = await start();
    const earlier = { ...started, startedSecondsAfterBoot: started.startedSecondsAfterBoot - 1 };

    const { sent } = await signalled(
      earlier,
      () => true,
      () => ({ plugins: [plugin(earlier)] }),
    );

    expect([sent, started.isAlive()]).toEqual([[], true]);
  });

  test("twice to a process that exits in between", async () => {
    const started = await start();
    let reads = 0;

    const { result, sent } = await signalled(
      started,
      () => {
        throw Object.assign(new Error("no such process"), { code: "ESRCH" });
      },
      () => (reads++ < 2 ? { plugins: [plugin(started)] } : {}),
    );

    expect([result.kind, sent]).toEqual(["done", [[started.pid, "SIGTERM"]]]);
  });

  test("and throws when it is not permitted", async () => {
    const started = await start();
    const refuse = () => {
      throw Object.assign(new Error("not permitted"), { code: "EPERM" });
    };

    await expect(signalled(started, refuse, () => ({ plugins: [plugin(started)] }))).rejects.toThrow("not permitted");
  });
});

describe("waiting for the runtime's rollback", () => {
  /** The runtime has these records for this many reads. */
  function recordedFor(readings: number, known: Partial<ContainerdFacts> = { records: [recordOf("a")] }) {
    const none = { records: [], sandboxes: [], leases: [], tasks: [] };
    const always = { ...none, records: [recordOf("b")], sandboxes: [recordOf("c")] };
    let left = readings;
    let seen: ContainerdFacts = { ...always, ...known };
    const facts = {
      ...fakeTools(fixture).facts,
      renew: () => {
        left -= 1;
        if (left <= 0) seen = always;
      },
      containerd: () => Promise.resolve(seen),
    };
    return { facts, leftOver: () => left };
  }

  async function ended(facts: StepTools["facts"], options?: { readonly awaitRollback: boolean }) {
    const started = await start();
    const { facts: table } = toolsFor({ processes: living([[started, plugin(started)]]) });
    const tools = { ...toolsFor({}), facts: { ...facts, processesNow: () => table.processesNow() } };
    return await endProcess(stepFor(started), FINDING, tools, options);
  }

  test.each<readonly [string, Partial<ContainerdFacts>, { readonly awaitRollback: boolean } | undefined, number]>([
    ["waits while a record is left", { records: [recordOf("a")] }, undefined, 0],
    ["waits while the sandbox store has it", { sandboxes: [recordOf("a")] }, undefined, 0],
    ["ends at once when only other sandboxes have records", {}, undefined, 2],
    ["is skipped when it is not requested", { records: [recordOf("a")] }, { awaitRollback: false }, 3],
  ])("%s", async (_, known, options, left) => {
    const { facts, leftOver } = recordedFor(3, known);
    expect([(await ended(facts, options)).kind, leftOver()]).toEqual(["done", left]);
  });

  test("is skipped when the runtime has no readable records", async () => {
    expect((await ended(fakeTools(fixture, { containerdFacts: undefined }).facts)).kind).toBe("done");
  });

  test("ends when the sandbox is listed, because that is a finding of its own", async () => {
    const { facts, leftOver } = recordedFor(3);
    await ended({ ...facts, sandbox: () => Promise.resolve(criSandbox(ID)) });
    expect(leftOver()).toBe(2);
  });
});
