import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ensureChromium } from "../../lab/chromium.ts";
import { PAGE } from "../../src/agent/page/gen/dashboard.ts";
import { openDashboard } from "../../src/fleet/dashboard/server.ts";
import type { FleetRow, FleetState } from "../../src/report/fleet-state.ts";
import { cutOff, inaccessible, openBrowser, visit } from "../agent/page/browser.ts";

const found = await ensureChromium();
const skipped = found.available ? "" : ` (skipped: ${found.reason})`;
const CLASS = "libcni-result-cache-corrupt";
const HOSTILE = `<img src=x onerror="alert(1)">`;
const NODES = 5000;

function node(one: number): FleetRow {
  const isBad = one < 60;
  return {
    name: `edge-${String(one).padStart(4, "0")}`,
    verdict: isBad ? "ghosts" : "healthy",
    isStale: false,
    status: "Ready",
    agent: "ready",
    classes: isBad ? [{ class: CLASS, count: 2 }] : [],
    blocked: isBad ? 1 : 0,
    ...(one === 0 ? { cannotStart: new Date().toISOString() } : {}),
  };
}

const FLEET: FleetState = {
  version: "1",
  cluster: "api.example:6443",
  readAt: new Date().toISOString(),
  nodes: Array.from({ length: NODES }, (_, one) => node(one)),
  classes: [{ id: CLASS, title: "Corrupt CNI result cache", nodes: 60, findings: 120 }],
  blockedPods: Array.from({ length: 60 }, (_, one) => ({ pod: `shop/web-${one}`, node: node(one).name })),
  heals: [{ node: "edge-0001", what: "a request to heal", by: HOSTILE }],
  onHold: [{ message: "60 of 5000 nodes became unhealthy within 10 minutes", nodes: ["edge-0000"] }],
  slots: [{ name: "unghost-heal-0", holder: "edge-0001" }],
  problems: [],
};

async function served(): Promise<string> {
  const read = () => Promise.resolve(FLEET);
  const dashboard = await openDashboard({
    port: 0,
    page: PAGE,
    first: { ...FLEET, readAt: undefined, nodes: [] },
    read,
  });
  onTestFinished(() => dashboard.close());
  return dashboard.address;
}

describe.skipIf(!found.available)(`the dashboard in a browser${skipped}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    if (found.available) browser = await openBrowser(found);
  });
  afterAll(() => browser.close());

  test.each([
    ["light", { colorScheme: "light", viewport: { width: 1280, height: 900 } }],
    ["dark", { colorScheme: "dark", viewport: { width: 1280, height: 900 } }],
    ["a phone", { colorScheme: "light", viewport: { width: 360, height: 740 } }],
  ] as const)("shows 5,000 nodes with a bounded document, in %s", async (_title, options) => {
    const { page, complaints, strangers } = await visit(browser, await served(), options);
    onTestFinished(() => page.context().close());

    await page.getByRole("heading", { name: "60 of 5000 nodes with ghosts" }).waitFor();
    const text = await page.locator("main").innerText();
    for (const expected of [
      "edge-0000",
      CLASS,
      "shop/web-0",
      "held by edge-0001",
      HOSTILE,
      "cannot start pods",
      "on hold",
    ])
      expect(text).toContain(expected);
    expect(await page.evaluate<number>("document.querySelectorAll('*').length")).toBeLessThan(1000);
    expect(await page.title()).toBe("60 of 5000 nodes with ghosts · api.example:6443 · unghost");

    await page.getByLabel("Name contains").fill("edge-4999");
    await page.getByRole("heading", { name: /^edge-4999 / }).waitFor();
    expect(await page.locator(".nodes li").count()).toBe(1);
    await page.getByLabel("Name contains").fill("");
    await page.getByRole("button", { name: CLASS }).click();
    await page.getByRole("button", { name: "Show 10 more nodes" }).click();
    await page.getByRole("heading", { name: /^edge-0059 / }).waitFor();
    expect(await page.locator(".nodes li").count()).toBe(60);

    expect([complaints, strangers]).toEqual([[], []]);
    expect([await inaccessible(page), await cutOff(page)]).toEqual([[], []]);
  });
});
