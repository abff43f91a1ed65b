import { chmod, writeFile } from "node:fs/promises";
import type { Browser } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Chromium, ensureChromium } from "../../lab/chromium.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { documentBytes, firstPaintMs, inaccessible, markDocument, openBrowser, visit } from "../agent/page/browser.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { tempDir } from "../support/temp-dir.ts";
import { GUARD_MS, UNGHOST } from "./unghost.ts";

const found = await ensureChromium();
const reason = found.available ? NO_REAL_NODE : found.reason;
const title = `the status page of an agent${reason === undefined ? "" : ` (skipped: ${reason})`}`;

const ADDRESS = "http://127.0.0.1:20258";
const CONFIG = "/etc/unghost/agent.yaml";
const PHONE = { width: 360, height: 740 };
const KB = 1000;
/** The limit is 500 ms on a quiet machine; a multiple of plain pages is independent of the machine. */
const PLAIN_PAGES = 10;

async function setMode(node: LabNode, mode: "observe" | "heal"): Promise<void> {
  await node.writeFile(CONFIG, `agent:\n  classes:\n    libcni-result-cache-corrupt: ${mode}\n`);
}

/** Runs until it is killed or the node is gone. */
function startAgent(node: LabNode): void {
  void node.exec([UNGHOST, "agent", "--no-kube", "--config", CONFIG]);
}

async function killAgent(node: LabNode): Promise<void> {
  const agent = await until("the agent runs", GUARD_MS, () =>
    processesOf(node).find(({ command }) => command[0] === UNGHOST && command[1] === "agent"),
  );
  await node.kill(agent.pid);
}

/** A browser in the node's network namespace, because the agent listens only on loopback. */
async function openBrowserIn(node: LabNode, chromium: Chromium): Promise<Browser> {
  const dir = tempDir();
  const wrapper = dir.join("chromium-in-node");
  await writeFile(
    wrapper,
    `#!/bin/sh\nexec nsenter --net=/proc/${node.initPid}/ns/net -- ${chromium.executable} "$@"\n`,
  );
  await chmod(wrapper, 0o755);
  const browser = await openBrowser(chromium, wrapper);
  onTestFinished(async () => {
    await browser.close();
    dir.remove();
  });
  return browser;
}

async function isListening(browser: Browser): Promise<boolean> {
  const page = await browser.newPage();
  try {
    return (await page.goto(`${ADDRESS}/healthz`))?.ok() ?? false;
  } catch {
    // Not listening yet.
    return false;
  } finally {
    await page.close();
  }
}

async function bestOf(times: number, measure: () => Promise<number>): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let time = 0; time < times; time += 1) best = Math.min(best, await measure());
  return best;
}

describe.skipIf(reason !== undefined)(title, { timeout: HANG_GUARD_MS }, () => {
  test("shows a ghost appear and be healed, across a restart, without a reload", async () => {
    if (!found.available) return;
    const node = await start();
    const pod = await runPod(node, { name: "web" });
    await setMode(node, "observe");
    startAgent(node);
    const browser = await openBrowserIn(node, found);
    await until("the agent listens", GUARD_MS, async () => ((await isListening(browser)) ? true : undefined));
    const { page, complaints, strangers } = await visit(browser, ADDRESS);
    const heading = (name: string) => page.getByRole("heading", { name }).waitFor({ timeout: GUARD_MS });
    await heading("Healthy");
    const isSameDocument = await markDocument(page);

    await emptyResultCache(node, pod);
    await expect(node.cri.stopPodSandbox(pod.sandboxId, CALL)).rejects.toThrow(RuntimeError);
    await heading("1 ghost");
    await page.getByText(pod.sandboxId, { exact: true }).waitFor();
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await inaccessible(page)).toEqual([]);
    }
    await page.setViewportSize(PHONE);
    expect(await inaccessible(page)).toEqual([]);

    await killAgent(node);
    await page.getByText("connection lost").waitFor();
    startAgent(node);
    await page.getByText("live", { exact: true }).waitFor({ timeout: GUARD_MS });
    await heading("1 ghost");

    await setMode(node, "heal");
    await heading("Healthy");
    await page.getByText("unghost undo").waitFor();

    expect([await isSameDocument(), complaints, strangers]).toEqual([true, [], []]);
    const { length } = await page.evaluate<string>("fetch('/api/state').then((state) => state.text())");
    const bytes = (await documentBytes(page)) + length;
    expect(bytes).toBeLessThan(100 * KB);
    const plain = await bestOf(3, () => firstPaintMs(browser, `${ADDRESS}/healthz`));
    const painted = await bestOf(3, () => firstPaintMs(browser, ADDRESS));
    console.log(
      `status page: first paint ${painted.toFixed()} ms (a plain one: ${plain.toFixed()} ms), ${bytes} bytes`,
    );
    expect(painted).toBeLessThan(PLAIN_PAGES * plain);
  });
});
