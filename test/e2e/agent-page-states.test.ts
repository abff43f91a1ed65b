import { join } from "node:path";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ensureChromium } from "../../lab/chromium.ts";
import manifest from "../../package.json" with { type: "json" };
import { openAgentServer } from "../../src/agent/http/server.ts";
import type { AgentState, Standing } from "../../src/agent/state/state.ts";
import { openStore, type Store } from "../../src/agent/state/store.ts";
import { scanOf } from "../agent/metrics/agent-state.ts";
import {
  eventfulDay,
  ghostState,
  healItem,
  healRun,
  healthyState,
  point,
  sighting,
} from "../agent/page/agent-states.ts";
import {
  cutOff,
  documentBytes,
  inaccessible,
  markDocument,
  openBrowser,
  type Visit,
  visit,
} from "../agent/page/browser.ts";

const found = await ensureChromium();
const skipped = found.available ? "" : ` (skipped: ${found.reason})`;
const VERSION = { version: manifest.version };
const GIVEN_UP: Standing = { kind: "given-up", message: "3 attempts failed.", next: "restart the plugin" };

function bootItem(one: number) {
  const pod = `api-${one}`;
  return { finding: pod, class: "dead-after-crash", subject: `shop/${pod}`, did: ["removed the sandbox"], undo: [] };
}

interface Served {
  readonly address: string;
  readonly store: Store;
  close(): Promise<void>;
}

async function serve(state: AgentState, listen = "127.0.0.1:0"): Promise<Served> {
  const store = openStore({ ...state, ...VERSION });
  const server = await openAgentServer({
    store,
    listen,
    readyWithinMs: () => 60_000,
    warn: (...problem) => expect.fail(problem.join(": ")),
  });
  onTestFinished(() => server.close());
  return { address: server.address, store, close: () => server.close() };
}

describe.skipIf(!found.available)(`the status page in a browser${skipped}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    if (found.available) browser = await openBrowser(found);
  });
  afterAll(() => browser.close());

  async function visited(address: string, options: BrowserContextOptions = {}): Promise<Visit> {
    const seen = await visit(browser, address, options);
    onTestFinished(() => seen.page.context().close());
    return seen;
  }

  test("shows verdict, blocked pods, evidence, status, heals and the day, without errors and without other hosts", async () => {
    const state = ghostState([sighting()], { runs: [healRun()], timeline: eventfulDay(Date.now()) });
    const { address } = await serve(state);
    const { page, complaints, strangers } = await visited(address);

    await page.getByRole("heading", { name: "1 ghost" }).waitFor();
    const text = await page.locator("main").innerText();
    for (const expected of [
      "shop/web-0 cannot start",
      "Corrupt CNI result cache",
      "NotReady in list and status, no container of it runs",
      "It is healed once it has stood for 2m.",
      ">3d old, first seen 1m",
      "moved its broken or stale file to quarantine, saved its logs, removed the sandbox",
      "unghost undo 0mi2k4x9q-a1b2",
      "containerd 2.3.4 at unix:///run/containerd/containerd.sock",
      "at most 8 ghosts at once, 7 healed, 1 failed heal, 2 crash restarts, 2 kernel stalls",
    ])
      expect(text).toContain(expected);
    await page.getByRole("img", { name: "The last 24 hours: at most 8 ghosts" }).locator("canvas").waitFor();
    expect(await page.title()).toBe("1 ghost · edge-7 · unghost");
    expect([complaints, strangers]).toEqual([[], []]);
  });

  test("lists the steps that are planned, not the general ones of the class", async () => {
    const { address } = await serve(ghostState([sighting()]));
    const { page } = await visited(address);

    await page.getByRole("heading", { name: "unghost heal runs" }).waitFor();
    expect(await page.locator(".finding ol li").allInnerTexts()).toEqual([
      "Move the broken file to quarantine (undo puts it back).",
      "Remove it through the runtime.",
    ]);
  });

  test("commands can be copied as they run where the reader is", async () => {
    const commandPlace = "kubectl --namespace unghost exec -it unghost-agent-x --";
    const { address } = await serve(ghostState([sighting()], { commandPlace }));
    const { page } = await visited(address);

    await page.getByText(`${commandPlace} unghost heal --dry-run`, { exact: true }).waitFor();
  });

  test("lists the manual steps of a class that is not healed automatically", async () => {
    const treatment = { automatic: false, reversible: false, steps: ["restart the plugin"] };
    const plan = { steps: [], reason: "its steps are manual", code: "needs-consent" };
    const { address } = await serve(ghostState([sighting({ treatment, plan })]));
    const { page } = await visited(address);

    await page.getByRole("heading", { name: "Manual steps" }).waitFor();
    expect(await page.locator(".finding ol li").allInnerTexts()).toEqual(["Restart the plugin."]);
  });

  test("links each class to its explanation, which a click opens beside the page", async () => {
    const { address } = await serve(ghostState([sighting()]));
    const { page, complaints } = await visited(address);
    const opened = page.waitForEvent("popup");

    await page.getByRole("link", { name: "Cause, cure and danger of libcni-result-cache-corrupt" }).click();

    const explanation = await opened;
    await explanation.getByText("How it reads in logs").waitFor();
    expect(new URL(explanation.url()).pathname).toBe("/explain/libcni-result-cache-corrupt");
    expect(await page.getByRole("heading", { name: "1 ghost" }).isVisible()).toBe(true);
    expect(complaints).toEqual([]);
  });

  test("shows hostile names as text", async () => {
    const name = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;
    const { address } = await serve(ghostState([sighting({ pod: name, class: name })], { node: name }));
    const { page, complaints } = await visited(address);

    await page.getByText(`shop/${name} cannot start`).waitFor();
    expect(await page.locator("img, body script ~ script").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test("follows the state without a reload, and keeps opened sections open", async () => {
    const { address, store } = await serve(healthyState());
    const { page } = await visited(address);
    await page.getByRole("heading", { name: "Healthy" }).waitFor();
    const isSameDocument = await markDocument(page);

    store.update(() => ({ ...ghostState([sighting({ standing: GIVEN_UP })]), ...VERSION }));
    await page.getByText("Next: restart the plugin").waitFor();
    store.update((state) => ({ ...state, pauseReason: { reason: "paused", message: "The node is annotated." } }));
    await page.getByRole("heading", { name: "Healing is on hold: paused" }).waitFor();
    expect(await page.getByText("Next: restart the plugin").isVisible()).toBe(true);
    store.update(() => ({ ...healthyState({ runs: [healRun()] }), ...VERSION }));
    await page.getByRole("heading", { name: "Healthy" }).waitFor();

    expect(await isSameDocument()).toBe(true);
  });

  test("shows that the agent is down, and reconnects when it is back", async () => {
    const first = await serve(healthyState());
    const { page, complaints } = await visited(first.address);
    await page.getByText("live", { exact: true }).waitFor();
    const isSameDocument = await markDocument(page);

    await first.close();
    await page.getByText("connection lost").waitFor();
    await page.getByText(/, last seen .* ago\)/).waitFor();
    await serve(ghostState([sighting()]), new URL(first.address).host);
    await page.getByRole("heading", { name: "1 ghost" }).waitFor();

    await page.getByText("live", { exact: true }).waitFor();
    expect([await isSameDocument(), complaints]).toEqual([true, []]);
  });

  test("reloads once when the agent has another version", async () => {
    const { address, store } = await serve(healthyState());
    const { page } = await visited(address);
    await page.getByRole("heading", { name: "Healthy" }).waitFor();
    let loads = 0;
    page.on("load", () => (loads += 1));

    store.update((state) => ({ ...state, version: "99.0.0" }));

    await page.getByRole("heading", { name: "This page is out of date" }).waitFor();
    expect(loads).toBe(1);
  });

  test("stays small with hundreds of findings, and opens them by keyboard", async () => {
    const classes = ["libcni-result-cache-corrupt", "dead-after-crash", "pod-gone"];
    const sightings = Array.from({ length: 600 }, (_, index) => {
      const made = sighting({ pod: `web-${index}`, class: classes[index % classes.length] ?? "" });
      return { ...made, finding: { ...made.finding, id: String(index) } };
    });
    const { address } = await serve(ghostState(sightings));
    const { page } = await visited(address);
    await page.getByRole("heading", { name: "600 ghosts" }).waitFor();
    const elements = () => page.locator("*").count();
    expect(await elements()).toBeLessThan(400);

    const group = page.locator("summary", { hasText: "Corrupt CNI result cache" });
    await group.focus();
    await page.keyboard.press("Enter");
    await page.getByText("180 not shown").waitFor();
    await page.getByRole("button", { name: "Show 20 more findings" }).press("Enter");
    await page.getByText("160 not shown").waitFor();

    expect(await page.locator("details.finding").count()).toBe(40);
    expect(await elements()).toBeLessThan(1000);
  });

  test("is under 100 kB in total, also after a day", async () => {
    const { address } = await serve(healthyState({ timeline: eventfulDay(Date.now()), runs: [healRun()] }));
    const { page } = await visited(address);
    const firstMessage = await (await fetch(`${address}/api/state`)).text();

    expect((await documentBytes(page)) + firstMessage.length).toBeLessThan(100_000);
  });

  const troubled = scanOf({
    report: {
      observedAt: new Date().toISOString(),
      verdict: "unknown",
      runtime: {
        name: "containerd",
        version: "",
        endpoint: "unix:///run/containerd/containerd.sock",
        reachable: false,
      },
      problems: [{ source: "cri", problem: "connection refused", next: "systemctl status containerd" }],
    },
  });
  const pauseReason = { reason: "paused", message: "The node is annotated." } as const;
  const { runs: _notRead, ...unread } = healthyState({ pauseReason, configProblem: "line 3: no such key." });
  const blind: AgentState = { ...unread, scan: troubled };
  const rich = {
    runs: [
      healRun(),
      healRun({ run: "b", by: "cli", items: [healItem({ outcome: "failed", reason: "timeout", did: [], undo: [] })] }),
      healRun({ run: "c", by: "boot", items: Array.from({ length: 30 }, (_, one) => healItem(bootItem(one))) }),
    ],
    timeline: eventfulDay(Date.now()),
  };
  const forty = Array.from({ length: 40 }, (_, index) =>
    sighting({ pod: `web-${index}`, class: index === 0 ? "libcni-result-cache-corrupt" : "dead-after-crash" }),
  );
  const healing = forty.slice(0, 3).map((one): typeof one => ({ ...one, standing: { kind: "healing" } }));
  const moods: readonly (readonly [string, AgentState])[] = [
    ["healthy", healthyState(rich)],
    ["40-ghosts", ghostState(forty, rich)],
    ["healing", ghostState(healing, { timeline: [point(Math.floor(Date.now() / 60_000) * 60, { ghosts: 3 })] })],
    ["given-up", ghostState([sighting({ standing: GIVEN_UP })], rich)],
    ["blind", blind],
  ];
  const themes: readonly (readonly [string, BrowserContextOptions])[] = [
    ["in light", { colorScheme: "light" }],
    ["in the dark", { colorScheme: "dark" }],
    ["on a phone in the dark", { colorScheme: "dark", viewport: { width: 360, height: 740 }, isMobile: true }],
  ];
  const eachTheme = moods.flatMap(([mood, state]) =>
    themes.map(([theme, options]) => [mood, theme, state, options] as const),
  );
  test.each(eachTheme)("is accessible when %s, %s", async (mood, theme, state, options) => {
    const { address } = await serve(state);
    const { page } = await visited(address, options);
    await page.getByText("Hour by hour").click();

    const shots = process.env["UNGHOST_TEST_SHOTS"];
    if (shots !== undefined) {
      await page.screenshot({ path: join(shots, `${mood}-${theme.replaceAll(" ", "-")}.png`), fullPage: true });
    }
    expect(await inaccessible(page)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });

  test.each(moods)("fits on a phone when %s", async (_mood, state) => {
    const { address } = await serve(state);
    const { page } = await visited(address, { isMobile: true, viewport: { width: 320, height: 740 } });
    await page.getByText("Hour by hour").waitFor();
    const openAll = "document.querySelectorAll('details:not([open]) > summary').forEach((summary) => summary.click())";
    await page.evaluate(openAll);
    await page.locator(".hours > :not(summary)").first().waitFor();
    await page.evaluate(openAll);

    for (const width of [320, 360, 390]) {
      await page.setViewportSize({ width, height: 740 });
      expect(await cutOff(page), `${width} px`).toEqual([]);
    }
  });

  test("a node without a verdict has no numbers, no ruled out ghosts and an unknown day", async () => {
    const { address } = await serve(blind);
    const { page } = await visited(address);
    await page.getByText("Hour by hour").click();

    await page.getByText("The last 24 hours: ghosts unknown.").waitFor();
    expect(await page.locator("dl.numbers dd").allInnerTexts()).toEqual([
      "–",
      "–",
      "–",
      expect.stringContaining("ago"),
    ]);
    expect(await page.locator(".hours dd").allInnerTexts()).toEqual([expect.stringMatching(/^unknown for 2[34]h/)]);
    expect(await page.locator("main").innerText()).not.toMatch(/no ghosts|not changed/i);
  });
});
