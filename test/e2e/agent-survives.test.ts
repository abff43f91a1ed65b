import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { openCri } from "../../src/runtime/cri.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { tempDir } from "../support/temp-dir.ts";
import { expectGone, listedIds } from "./healed-node.ts";
import { BY_TRIGGERS_ALONE, healedBy, type RunningAgent, startAgent } from "./running-agent.ts";
import { simulatedNode } from "./unghost.ts";

const GUARD_MS = 120_000;
const SECOND_SCAN_MS = 3000;

type Node = Awaited<ReturnType<typeof simulatedNode>>;

interface KeptAttempts {
  readonly written: { readonly at: string };
  readonly subjects: readonly {
    readonly finding: string;
    readonly attempts: readonly { readonly outcome: string }[];
  }[];
}

function attemptsFile({ root }: Node): string {
  return join(root, "var/lib/unghost/attempts.json");
}

function keptAttempts(node: Node): KeptAttempts | undefined {
  const path = attemptsFile(node);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as KeptAttempts) : undefined;
}

function outcomesOn(node: Node, id: string): readonly string[] {
  const subject = keptAttempts(node)?.subjects.find(({ finding }) => finding.includes(id));
  return subject?.attempts.map(({ outcome }) => outcome) ?? [];
}

/** An agent that retries a failure after a second, and gives up after the second attempt. */
function twoAttempts(node: Node): RunningAgent {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  const config = dir.join("config.yaml");
  writeFileSync(config, "agent:\n  defaults: { attempts: 2, coolDown: 1s }\n");
  return startAgent([...BY_TRIGGERS_ALONE, ...node.where, "--config", config]);
}

function attemptsOf(agent: RunningAgent): number {
  return agent.lines.filter(({ msg }) => msg === "healing failed" || msg === "ghost healed").length;
}

async function kill(agent: RunningAgent): Promise<void> {
  agent.signal("SIGKILL");
  await until("the agent is dead", GUARD_MS, () => agent.process.signalCode ?? undefined);
}

/** Waits until this many attempts are on disk, and kills the agent. */
async function killInTheMiddle(agent: RunningAgent, node: Node, id: string, attempts: number): Promise<void> {
  await until(
    `attempt ${attempts} is under way`,
    GUARD_MS,
    () => outcomesOn(node, id).length === attempts || undefined,
  );
  await kill(agent);
}

describe("an agent that is killed", { timeout: GUARD_MS * 2 }, () => {
  test("during each heal gives up in the end, although no process recorded an end", async () => {
    const node = await simulatedNode();
    const [id = ""] = node.addSandboxes(1, { state: "dead" });
    node.script({ hangs: [id] });
    await killInTheMiddle(twoAttempts(node), node, id, 1);
    await killInTheMiddle(twoAttempts(node), node, id, 2);

    const third = twoAttempts(node);
    const { message } = await third.logged("healing given up; manual steps required");

    expect(message).toContain("2 attempts");
    expect(message).toContain("unghost was ended in the middle of it");
    expect([attemptsOf(third), outcomesOn(node, id)]).toEqual([0, ["interrupted", "interrupted"]]);
    expect(await third.stop()).toBe(0);
  });

  test("during a heal completes it after its restart, and counts the attempt", async () => {
    const node = await simulatedNode();
    const [id = ""] = node.addSandboxes(1, { state: "dead" });
    node.script({ hangs: [id] });
    await killInTheMiddle(twoAttempts(node), node, id, 1);
    node.script({ hangs: [] });

    const second = twoAttempts(node);
    await second.logged("ghost healed", ({ finding }) => finding?.includes(id) === true);

    expect(await second.stop()).toBe(0);
    expect(outcomesOn(node, id)).toEqual(["interrupted", "healed"]);
  });
});

/** A node whose agent has used up the retries of one sandbox and ended. */
async function givenUp(): Promise<Node> {
  const node = await simulatedNode();
  const [id = ""] = node.addSandboxes(1, { state: "dead" });
  node.script({ delErrors: { [id]: "the plugin is in a bad mood" } });
  const agent = twoAttempts(node);
  await agent.logged("healing given up; manual steps required");
  expect([attemptsOf(agent), await agent.stop()]).toEqual([2, 0]);
  return node;
}

/** As if this had been the time when the file was written. */
function writtenAt(node: Node, at: string): void {
  const kept = keptAttempts(node);
  if (kept === undefined) throw new Error("nothing was kept");
  writeFileSync(attemptsFile(node), JSON.stringify({ ...kept, written: { ...kept.written, at } }));
}

describe("a spent budget", { timeout: GUARD_MS * 2 }, () => {
  test.each([
    ["restart", "with a clock that was right", new Date().toISOString()],
    ["restart", "with a clock that was set forward by years", "2021-01-01T00:00:00Z"],
    ["restart", "with a clock that was set back by years", "2090-01-01T00:00:00Z"],
    ["reboot", "with a clock that was right", new Date().toISOString()],
    ["reboot", "with a clock that was set back by years", "2090-01-01T00:00:00Z"],
    ["reboot", "with a clock that stood near 1970 before", "1970-01-01T00:01:00Z"],
  ])("is still spent after a %s %s", async (how, _clock, at) => {
    const node = await givenUp();
    writtenAt(node, at);
    if (how === "reboot") await node.powerCut();

    const second = twoAttempts(node);
    await second.logged("healing given up; manual steps required");

    expect([attemptsOf(second), await second.stop()]).toEqual([0, 0]);
  });

  test("is reset when its file is damaged, and that is reported", async () => {
    const node = await givenUp();
    writeFileSync(attemptsFile(node), "{");

    const second = twoAttempts(node);
    const { problem } = await second.logged("reading attempts failed");
    expect(problem).toMatch(/attempts\.json is damaged, .*: retry budgets start again$/);
    await second.logged("healing given up; manual steps required");

    expect([attemptsOf(second), await second.stop()]).toEqual([2, 0]);
    expect(keptAttempts(node)?.subjects.map(({ attempts }) => attempts.length)).toEqual([2]);
  });
});

test("after a wrong clock, running sandboxes are not touched and dead ones are healed", {
  timeout: GUARD_MS,
}, async () => {
  const node = await simulatedNode();
  const ages = [-86_400, 50 * 365 * 86_400];
  const running = ages.flatMap((ageSeconds) => node.addSandboxes(2, { state: "ready", ageSeconds }));
  for (const ageSeconds of ages) node.addSandboxes(2, { state: "dead", ageSeconds });
  const agent = startAgent([...BY_TRIGGERS_ALONE, ...node.where]);

  await agent.logged("ghost healed", () => healedBy(agent).length === 4);

  const cri = openCri(node.socket);
  onTestFinished(() => cri.close());
  const left = (await cri.listPodSandbox(undefined, CALL)).map(({ id }) => id);
  expect(left.toSorted()).toEqual(running.toSorted());
  expect([await agent.stop(), agent.stderr()]).toEqual([0, ""]);
});

/** A fake journalctl: a scan gets no lines, and a followed line appears when a file is created. */
function fakeJournalctl(): { readonly bin: string; readonly speak: () => void } {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  const go = dir.join("go");
  const line = 'level=error msg="StopPodSandbox failed" error="failed to destroy network for sandbox"';
  const script = [
    "#!/bin/sh",
    'case "$*" in *--follow*) ;; *) exit 0 ;; esac',
    `for second in $(seq 1200); do [ -e ${go} ] && break; sleep 0.1; done`,
    `echo '${line}'`,
    "exec sleep 120",
  ];
  writeFileSync(dir.join("journalctl"), `${script.join("\n")}\n`, { mode: 0o755 });
  return { bin: dir.path, speak: () => writeFileSync(go, "") };
}

describe("journald", { timeout: GUARD_MS }, () => {
  test("is followed: a line makes the agent scan and heal, without another hint", async () => {
    const node = await simulatedNode();
    for (const place of ["run/systemd/journal", "var/log/journal"])
      mkdirSync(join(node.root, place), { recursive: true });
    const { bin, speak } = fakeJournalctl();
    const agent = startAgent([...BY_TRIGGERS_ALONE, ...node.where, "--log-level", "debug"], {
      PATH: `${bin}:/usr/bin:/bin`,
    });
    await agent.logged("hint", ({ from }) => from === "runtime answers");
    // The second scan after that hint must be over, because it would find what only the journal should reveal.
    await sleep(SECOND_SCAN_MS);
    const [id = ""] = node.addSandboxes(1, { state: "half-made" });

    speak();
    const hint = await agent.logged("hint", ({ from }) => from === "lines in the journal");
    const detected = await agent.logged("ghost detected");
    await agent.logged("ghost healed", ({ finding }) => finding?.includes(id) === true);

    expect(agent.lines.indexOf(hint)).toBeLessThan(agent.lines.indexOf(detected));
    expect([await agent.stop(), agent.stderr()]).toEqual([0, ""]);
  });

  test("is optional: its absence is logged in one line", async () => {
    const node = await simulatedNode();
    const agent = startAgent([...BY_TRIGGERS_ALONE, ...node.where]);

    const { detail } = await agent.logged("journald unavailable; relying on periodic scans");

    expect([detail, await agent.stop()]).toEqual([expect.stringContaining("there is none on this node"), 0]);
  });
});

/** A separate file system, completely full. */
const FULL_STATE_DIR = `
  mkdir -p /var/lib/unghost && mount -t tmpfs -o size=16m,mode=0700 tmpfs /var/lib/unghost
  dd if=/dev/zero of=/var/lib/unghost/filler bs=1M 2>/dev/null
  true`;

describe.skipIf(NO_REAL_NODE !== undefined)("a full disk", { timeout: HANG_GUARD_MS }, () => {
  test("under the state directory: the agent scans and reports, changes nothing, logs it once, and heals when there is space", async () => {
    const node = await start();
    const pod = await runPod(node, { name: "ghost", containers: [{ name: "main" }] });
    await node.powerCut();
    await node.powerOn();
    await node.check(["sh", "-c", FULL_STATE_DIR]);
    const before = await listedIds(node);
    const root = `/proc/${node.initPid}/root`;
    const listen = ["--listen", "127.0.0.1:0", "--scan-every", "200ms"];
    const agent = startAgent(["--no-kube", "--min-age", "0s", ...listen, "--host-root", root, "--log-level", "debug"]);
    const { message } = await agent.logged("not healed", ({ reason }) => reason === "disk");
    expect(message).toContain("is full or nearly so");

    const scans = (): number => agent.lines.filter(({ msg }) => msg === "scanned").length;
    const sofar = scans();
    await until("it goes on scanning", HANG_GUARD_MS, () => scans() > sofar + 10 || undefined);
    const { address } = await agent.logged("listening");
    const [ready, metrics] = await Promise.all(
      ["readyz", "metrics"].map((path) => fetch(`${String(address)}/${path}`)),
    );
    expect([ready?.status, metrics?.status]).toEqual([200, 200]);
    expect(await metrics?.text()).toMatch(/^unghost_findings\{class="dead-after-crash"\} 1$/m);
    expect(await listedIds(node)).toEqual(before);
    expect(agent.lines.filter(({ reason, finding }) => reason === "disk" && finding === undefined)).toHaveLength(1);

    await node.check(["rm", "/var/lib/unghost/filler"]);
    await agent.logged("ghost healed", ({ finding }) => finding?.includes(pod.sandboxId) === true);

    await expectGone(node, pod);
    expect([await agent.stop(), agent.stderr()]).toEqual([0, ""]);
  });
});
