import axe from "axe-core";
import { type Browser, type BrowserContextOptions, type ConsoleMessage, chromium, type Page } from "playwright-core";
import type { Chromium } from "../../../lab/chromium.ts";
import { until } from "../../../lab/poll.ts";

/** An open page, and every problem in its console and its network. */
export interface Visit {
  readonly page: Page;
  readonly complaints: readonly string[];
  /** Requests to other origins than the page's own. */
  readonly strangers: readonly string[];
}

const PAINT_GUARD_MS = 60_000;

/** `executable` may be a wrapper that starts the browser elsewhere. */
export function openBrowser(found: Chromium, executable = found.executable): Promise<Browser> {
  const env = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "/root", ...found.env };
  return chromium.launch({ executablePath: executable, args: [...found.args], env });
}

export async function visit(browser: Browser, address: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const page = await (await browser.newContext(options)).newPage();
  const complaints: string[] = [];
  const strangers: string[] = [];
  page.on("console", (message) => {
    const isComplaint = message.type() === "error" || message.type() === "warning";
    if (isComplaint && !isAgentAway(message)) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${address}/`) && !url.startsWith("data:")) strangers.push(url);
  });
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', ({ violatedDirective }) => console.error(violatedDirective))",
  );
  await page.goto(address);
  return { page, complaints, strangers };
}

/** A broken stream, and each reconnect, is a message of the browser itself that no page can prevent. */
function isAgentAway(message: ConsoleMessage): boolean {
  return message.location().url.endsWith("/api/events") && message.text().startsWith("Failed to load resource: net::");
}

/** The transferred bytes of the document, including headers. */
export function documentBytes(page: Page): Promise<number> {
  return page.evaluate<number>("performance.getEntriesByType('navigation')[0].transferSize");
}

export async function firstPaintMs(browser: Browser, url: string): Promise<number> {
  const page = await browser.newPage();
  await page.goto(url);
  const painted = await until("the first paint", PAINT_GUARD_MS, () =>
    page.evaluate<number | undefined>("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"),
  );
  await page.close();
  return painted;
}

/** Violations of WCAG 2 A and AA found by axe, each with its element. */
export async function inaccessible(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(`axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => [id, target, failureSummary].join(" ")))
  )`);
}

/** Elements with overflowing content, or beyond the right edge. */
export async function cutOff(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll("body *:not(.hidden, .hidden *, .u-wrap *)")]
    .filter((element) => element.getBoundingClientRect().right > innerWidth ||
      (getComputedStyle(element).display !== "inline" && element.scrollWidth > element.clientWidth + 1))
    .map((element) => [element.tagName, element.className, element.innerText].join(" "))`);
}

/** A mark that is gone after a reload. */
export async function markDocument(page: Page): Promise<() => Promise<boolean>> {
  await page.evaluate("globalThis.stillTheSame = true");
  return () => page.evaluate<boolean>("globalThis.stillTheSame === true");
}
