import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { EVERY_POD, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { DELEGATE } from "../../lab/delegate-daemon.ts";
import {
  DAEMON_CONF,
  killMultusDaemon,
  limitMultusCpu,
  startMultusDaemon,
  useThickMultus,
} from "../../lab/multus-thick.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { apiKnows } from "../../lab/stub-api.ts";
import { ensureContainerd2 } from "../../lab/tools.ts";
import { GUARD_BIN_DIR } from "../../src/guard/home.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { installGuard } from "../e2e/guarded-node.ts";
import { CALL, start } from "../lab/real-node.ts";

await ensureContainerd2("2.1.6");

const DEAD = 40;
const NEW = 20;
const DAEMON_CONF_FILE = "/etc/cni/net.d/multus.d/daemon-config.json";
/** Kubelet's own, for RunPodSandbox. */
const ADD_MS = 240_000;

/** DELs of 40 pods that fail and are retried, beside 20 new pods, below a multus daemon with a tenth of a CPU. */
async function storm(isGuarded: boolean) {
  const node = await start({ runtime: "2.1" });
  await useThickMultus(node);
  if (isGuarded) {
    await installGuard(node);
    await node.writeFile(DAEMON_CONF_FILE, JSON.stringify({ ...DAEMON_CONF, binDir: GUARD_BIN_DIR }));
    await killMultusDaemon(node);
    await startMultusDaemon(node);
  }
  const dead = await runAll(node, "dead", DEAD, CALL.timeoutMs);
  await orderAtGate(node, "DEL", EVERY_POD, refusal("boom"), DELEGATE);
  await limitMultusCpu(node, 100);
  const over = new AbortController();
  const retries = dead.map(async ({ id }) => {
    let calls = 0;
    while (!over.signal.aborted) {
      calls++;
      if (id === undefined || (await stop(node, id))) break;
    }
    return calls;
  });
  const startedAt = performance.now();
  const added = await runAll(node, "new", NEW, ADD_MS);
  over.abort();
  const calls = await Promise.all(retries);
  const times = added.map(({ ms }) => ms).toSorted((one, other) => one - other);
  return {
    failed: added.filter(({ id }) => id === undefined).length,
    medianMs: Math.round(times[NEW / 2] ?? 0),
    allMs: Math.round(performance.now() - startedAt),
    dels: calls.reduce((sum, one) => sum + one, 0),
    log: readFileSync(node.path("/var/log/multus-daemon.log"), "utf8").length,
  };
}

async function runAll(node: LabNode, prefix: string, count: number, timeoutMs: number) {
  const names = Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  for (const name of names) await apiKnows(node, podRef({ name, uid: name }));
  return await Promise.all(
    names.map(async (name) => {
      const spec = { name, uid: name };
      const startedAt = performance.now();
      const id = await node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), { timeoutMs }).catch(refused);
      return { id, ms: performance.now() - startedAt };
    }),
  );
}

async function stop(node: LabNode, id: string): Promise<boolean> {
  return await node.cri.stopPodSandbox(id, { timeoutMs: 120_000 }).then(
    () => true,
    (error: unknown) => refused(error) !== undefined,
  );
}

function refused(error: unknown): undefined {
  if (!(error instanceof RuntimeError)) throw error;
}

test("40 failing DELs beside 20 new pods, with a tenth of a CPU", async () => {
  const guarded = await storm(true);
  const plain = await storm(false);

  console.log(JSON.stringify({ guarded, plain }));
  expect(guarded.failed).toBe(0);
});
