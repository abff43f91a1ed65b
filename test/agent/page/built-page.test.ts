import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { PAGE } from "../../../src/agent/page/gen/page.ts";

const KB = 1000;

describe("built page", () => {
  test.each([
    ["script", PAGE.scriptHashes],
    ["style", PAGE.styleHashes],
  ])("names every inline %s by its hash", (tag, hashes) => {
    const inline = [...PAGE.html.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, "g"))];

    expect(inline.map(([, content = ""]) => `sha256-${createHash("sha256").update(content).digest("base64")}`)).toEqual(
      hashes,
    );
    expect(hashes).toHaveLength(1);
  });

  test("works with a policy without unsafe-inline, and sends no requests", () => {
    const markup = PAGE.html.replace(/<(script|style)>[\s\S]*?<\/\1>/g, "");

    expect(markup).not.toMatch(/\s(?:on\w+|style)=/);
    expect(markup).not.toMatch(/\s(?:src|action)=/);
    expect([...markup.matchAll(/href="([^"]{0,5})/g)].map(([, start]) => start)).toEqual(["data:", "/api/"]);
  });

  test("is small, and the same when compressed", () => {
    const compressed = Buffer.from(PAGE.gzip, "base64");

    expect(gunzipSync(compressed).toString()).toBe(PAGE.html);
    expect(Buffer.byteLength(PAGE.html)).toBeLessThan(100 * KB);
    expect(compressed.length).toBeLessThan(42 * KB);
  });
});
