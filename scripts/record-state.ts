/**
 * Records the state directory that an unghost executable leaves on a node, for test/e2e/earlier-state.test.ts:
 * `node scripts/record-state.ts dist/unghost test/e2e/states/NAME`. Record one for each release.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { run } from "../lab/command.ts";
import { hangingDel } from "../lab/faults/hung-plugin.ts";
import { orphanedCache } from "../lab/faults/orphaned-cache.ts";
import { acceptDel, refusingDel } from "../lab/faults/refusing-plugin.ts";
import { emptyResultCache } from "../lab/faults/result-cache.ts";
import { type LabNode, startNode } from "../lab/node.ts";
import { finishedPod, runPod } from "../lab/pods.ts";
import { until } from "../lab/poll.ts";

const [program = "dist/unghost", out = "dist/recorded-state"] = process.argv.slice(2);
const UNGHOST = resolve(program);
const STATE_DIR = "/var/lib/unghost";
const AT_ONCE = ["--no-kube", "--min-age", "0s"];
const HANG_GUARD_MS = 120_000;

const node = await startNode({ visible: [dirname(UNGHOST)] });
try {
  await healedByHand(node);
  await healedByAgent(node);
  await healedAtBoot(node);
  await killedInTheMiddle(node);
  await rm(out, { recursive: true, force: true });
  await cp(node.path(STATE_DIR), out, { recursive: true });
  await rm(join(out, "lock"), { force: true });
  console.log(`recorded ${(await run([UNGHOST, "version"])).stdout.trim()} in ${out}`);
} finally {
  await node.destroy();
}

/** A corrupt cache and its sandbox, saved logs, an orphaned cache; one file is put back again. */
async function healedByHand(on: LabNode): Promise<void> {
  const pod = await runPod(on, { name: "web", containers: [{ name: "main" }] });
  await finishedPod(on, { name: "kept" });
  await orphanedCache(on);
  await emptyResultCache(on, pod);
  await on.powerCut();
  await on.powerOn();
  await on.exec([UNGHOST, "heal", "--yes", ...AT_ONCE], { timeoutMs: HANG_GUARD_MS });
  await orphanedCache(on);
  await on.exec([UNGHOST, "heal", "--yes", ...AT_ONCE], { timeoutMs: HANG_GUARD_MS });
  await on.check([UNGHOST, "undo", "--last"]);
}

/** One sandbox is healed, the DEL of another one fails: its attempts are counted. */
async function healedByAgent(on: LabNode): Promise<void> {
  const hopeless = await runPod(on, { name: "hopeless" });
  await runPod(on, { name: "db" });
  await on.powerCut();
  await on.powerOn();
  await refusingDel(on, hopeless);
  const flags = ["--no-kube", "--listen", "", "--scan-every", "1s", "--host-root", `/proc/${on.initPid}/root`];
  const agent = spawn(UNGHOST, ["agent", ...flags], { stdio: "ignore" });
  const ended = once(agent, "exit");
  const attempts = on.path(`${STATE_DIR}/attempts.json`);
  await until("the agent has counted a failed attempt", HANG_GUARD_MS, () => {
    return (existsSync(attempts) && readFileSync(attempts, "utf8").includes('"failed"')) || undefined;
  });
  agent.kill("SIGTERM");
  await ended;
  await acceptDel(on, hopeless);
}

async function healedAtBoot(on: LabNode): Promise<void> {
  await runPod(on, { name: "cache" });
  await on.powerCut();
  await on.powerOn();
  await on.check([UNGHOST, "boot", "--after", "--no-kube"], { timeoutMs: HANG_GUARD_MS });
}

/** Leaves an entry open: unghost is killed while the removal that it started hangs. */
async function killedInTheMiddle(on: LabNode): Promise<void> {
  const pod = await runPod(on, { name: "queue" });
  await on.powerCut();
  await on.powerOn();
  await hangingDel(on, pod);
  const healing = on.exec(["sh", "-c", `echo $$ >/run/healing; exec "$0" heal --yes ${AT_ONCE.join(" ")}`, UNGHOST]);
  await until("the removal is announced", HANG_GUARD_MS, () => {
    const last = readFileSync(on.path(`${STATE_DIR}/journal`), "utf8")
      .trimEnd()
      .split("\n")
      .at(-1);
    return last?.includes('"event":"begin"') && last.includes(pod.sandboxId) ? true : undefined;
  });
  await on.kill(Number(readFileSync(on.livePath("/run/healing"), "utf8")));
  await healing;
}
