import { globSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ensureChromium } from "../../lab/chromium.ts";
import { brokenLinks } from "../../scripts/site/links.ts";
import { classes } from "../../src/classes/index.ts";
import { cutOff, inaccessible, openBrowser, visit } from "../agent/page/browser.ts";
import { positives } from "../explain/corpus.ts";

const SITE = "dist/site";
const PHONE = { width: 360, height: 740 };
const TYPES: Readonly<Record<string, string>> = { html: "text/html", css: "text/css", js: "text/javascript" };

const found = await ensureChromium();
const reason = found.available ? "" : ` (skipped: ${found.reason})`;

test("has a page for every class with its error lines as headings, and no broken link", () => {
  for (const { id, signatures } of classes) {
    const page = readFileSync(join(SITE, "classes", id, "index.html"), "utf8");
    expect(page.match(/<h3 id="error-\d+"><code>/g) ?? [], id).toHaveLength(signatures().length);
  }
  expect(globSync("docs/**/index.html", { cwd: SITE }).length).toBeGreaterThan(50);
  expect(brokenLinks(SITE)).toEqual([]);
});

test("the page that explains transfers less than 300 kB in all, and requests nothing else", () => {
  const page = readFileSync(join(SITE, "explain/index.html"), "utf8");
  const loaded = [...page.matchAll(/<(?:script src|link rel="stylesheet" href)="([^"]+)"/g)].map(
    ([, path = ""]) => path,
  );
  const bytes = ["index.html", ...loaded].map((path) => statSync(join(SITE, "explain", path)).size);

  expect(loaded).toEqual(["../style.css", "../explain.js"]);
  expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(300_000);
  expect(page).toContain("default-src 'none'");
});

describe.skipIf(!found.available)(`in a browser${reason}`, () => {
  test("explains a line like the command, links to the class, and sends nothing", async () => {
    const { page, complaints, strangers, requests } = await open("explain/");
    const settled = requests.length;

    const line = positives.find((one) => one.expect === "inotify-instances-exhausted")?.line ?? "";
    await page.getByLabel("Error lines").fill(`${line}\n\nan ordinary line`);
    await page.getByRole("heading", { name: "Root has no inotify instances left" }).waitFor();

    expect(await page.locator("#answers").innerText()).toMatch(/Do this: .*sysctl -w fs\.inotify/);
    expect(await inaccessible(page)).toEqual([]);
    await page.setViewportSize(PHONE);
    expect(await cutOff(page)).toEqual([]);
    expect([complaints, strangers, requests.length]).toEqual([[], [], settled]);
    await page.locator("#answers").getByRole("link", { name: "inotify-instances-exhausted" }).first().click();
    await page.getByRole("heading", { level: 1, name: /Root has no inotify instances left/ }).waitFor();
    expect(await inaccessible(page)).toEqual([]);
  });

  test("answers what is unknown honestly, and reads no text as HTML", async () => {
    const { page, complaints } = await open("explain/");
    const answers = page.locator("#answers");

    await page.getByLabel("Error lines").fill("nothing of this <img src=x onerror=alert(1)> is known");
    await answers.getByText("Not recognised").waitFor();
    await page
      .getByLabel("Error lines")
      .fill('StopPodSandbox "a" failed: plugin type="other" failed (delete): <img src=x onerror=alert(1)> broke');
    await answers.getByText("unghost does not know this cause").waitFor();

    expect(await answers.locator("img").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test.each(["", "errors/", "classes/", "docs/", "docs/install/", "docs/security/"])(
    "/%s is readable on a phone, and accessible",
    async (path) => {
      const { page, complaints } = await open(path);

      await page.setViewportSize(PHONE);

      expect(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
      expect([await inaccessible(page), complaints]).toEqual([[], []]);
    },
  );
});

async function open(path: string) {
  if (!found.available) throw new Error(found.reason);
  const server = createServer((request, response) => {
    const asked = normalize(new URL(request.url ?? "/", "http://site").pathname);
    const file = join(SITE, asked.endsWith("/") ? `${asked}index.html` : asked);
    try {
      const content = readFileSync(file);
      response.writeHead(200, { "content-type": TYPES[file.split(".").at(-1) ?? ""] ?? "text/plain" }).end(content);
    } catch {
      // A browser asks for an icon.
      response.writeHead(204).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await openBrowser(found);
  onTestFinished(async () => {
    await browser.close();
    server.close();
  });
  const requests: string[] = [];
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const visited = await visit(browser, origin);
  visited.page.on("request", (request) => requests.push(request.url()));
  await visited.page.goto(`${origin}/${path}`);
  return { ...visited, requests };
}
