import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { classes } from "../../../src/classes/index.ts";
import { renderClass } from "../../../src/report/explain.ts";
import { freshState, scanOf, sightingOf } from "../metrics/agent-state.ts";
import { ask } from "./ask.ts";
import { opened, PAGE } from "./opened.ts";

const EVERYTHING = ["/", "/metrics", "/healthz", "/readyz", "/api/state", "/explain/dead-after-crash"];

describe("routes", () => {
  test("/healthz answers ok, whatever the scans do", async () => {
    const { address } = await opened();

    expect(await ask(address, "/healthz")).toMatchObject({ status: 200, text: "ok\n" });
  });

  test("/metrics is in the Prometheus text format", async () => {
    const { address } = await opened();

    const reply = await ask(address, "/metrics");

    expect(reply.headers["content-type"]).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(reply.text).toContain("\nunghost_circuit_breaker_open 0\n");
  });

  test("/api/state is the whole state, dates in ISO form and maps as objects", async () => {
    const { address, store } = await opened();
    const totals = { ...freshState().totals, heals: new Map([["pod-gone healed", 2]]) };
    store.update((state) => ({ ...state, totals, scan: scanOf(), sightings: [sightingOf("pod-gone")] }));

    const reply = await ask(address, "/api/state");

    expect(reply.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(reply.text)).toMatchObject({
      startedAt: "2026-03-01T12:00:00.000Z",
      totals: { heals: { "pod-gone healed": 2 }, refusals: {} },
      sightings: [{ firstSeenAt: "2026-03-01T12:00:30.000Z", finding: { class: "pod-gone" } }],
      scan: { report: { kind: "NodeReport" } },
    });
  });

  test("/ is the page, compressed for clients that accept it", async () => {
    const { address } = await opened();

    const plain = await ask(address, "/");
    const packed = await ask(address, "/", { headers: { "accept-encoding": "gzip, deflate" } });

    expect(plain.text).toBe(PAGE.html);
    expect(plain.headers["content-encoding"]).toBeUndefined();
    expect(packed.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(packed.body).toString()).toBe(PAGE.html);
  });

  test("/explain/CLASS is the output of unghost explain as plain text, for every class", async () => {
    const { address } = await opened();

    for (const one of classes) {
      const reply = await ask(address, `/explain/${one.id}`);
      expect(reply).toMatchObject({ status: 200, text: renderClass(one, { width: 100, colour: false }) });
      expect(reply.headers["content-type"]).toBe("text/plain; charset=utf-8");
    }
  });

  test("a browser gets it in the page's style, with names as text", async () => {
    const { address } = await opened();

    const reply = await ask(address, "/explain/dead-after-crash", { headers: { accept: "text/html,*/*;q=0.8" } });

    expect(reply.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(reply.headers["content-security-policy"]).toContain("style-src 'sha256-");
    expect(reply.text).toContain(/<style>.*?<\/style>/s.exec(PAGE.html)?.[0] ?? "no style");
    expect(reply.text).toContain("Sandbox that died with the node");
    expect(reply.text).not.toContain("<script");
    expect((await ask(address, "/explain/<b>", { headers: { accept: "text/html" } })).status).toBe(404);
  });

  test.each(["/explain/", "/explain/no-such-class", "/explain/constructor", "/explain/<b>"])(
    "%s is not found",
    async (path) => {
      const { address } = await opened();

      const reply = await ask(address, path);

      expect(reply.status).toBe(404);
      expect(reply.text).not.toContain("<b>");
    },
  );

  test("a query string changes nothing", async () => {
    const { address } = await opened();

    expect((await ask(address, "/healthz?verbose")).status).toBe(200);
  });

  test.each([...EVERYTHING, "/api/events"])("HEAD %s has the headers of GET and no body", async (path) => {
    const { address, store } = await opened();
    store.update((state) => ({ ...state, scan: scanOf() }));

    const head = await ask(address, path, { method: "HEAD" });

    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers["content-type"]).toMatch(path === "/api/events" ? "text/event-stream" : /text|json/);
  });
});

describe("refused requests", () => {
  test.each(["/metric", "/api", "/api/state/", "/../etc/passwd", "//", "/favicon.ico", "/%2e%2e/"])(
    "%s is not found",
    async (path) => {
      const { address } = await opened();

      expect((await ask(address, path)).status).toBe(404);
    },
  );

  test.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("%s is not allowed and changes nothing", async (method) => {
    const { address } = await opened();

    for (const path of [...EVERYTHING, "/api/events", "/nowhere"]) {
      const reply = await ask(address, path, { method });
      expect(reply.status).toBe(405);
      expect(reply.headers.allow).toBe("GET, HEAD");
    }
  });

  test("a page that cannot be rendered is reported, and the next request is answered", async () => {
    const { address, problems } = await opened({ page: () => Promise.reject(new Error("it was not built")) });

    await expect(ask(address, "/")).rejects.toThrow();

    expect(problems).toEqual(["request failed: GET /: it was not built"]);
    expect((await ask(address, "/healthz")).status).toBe(200);
  });
});

describe("headers for browsers", () => {
  test("the page may run only its own script and style, and connect only to its own agent", async () => {
    const { address } = await opened();

    const policy = (await ask(address, "/")).headers["content-security-policy"];

    expect(policy).toBe(
      "default-src 'none'; script-src 'sha256-script'; style-src 'sha256-style'; img-src data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
  });

  test.each([...EVERYTHING, "/nowhere"])(
    "%s may not be sniffed, framed, cached, referred or read cross-origin",
    async (path) => {
      const { address } = await opened();

      const { headers } = await ask(address, path, { headers: { origin: "https://evil.example" } });

      expect(headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "cross-origin-resource-policy": "same-origin",
      });
      expect(headers["content-security-policy"]).toContain("default-src 'none'");
      expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
      expect(Object.keys(headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
    },
  );
});

describe("Host headers that an agent on loopback accepts", () => {
  test.each(["localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1:20258", "127.1.2.3", "[::1]:20258"])(
    "%s is accepted",
    async (host) => {
      const { address } = await opened();

      expect((await ask(address, "/api/state", { headers: { host } })).status).toBe(200);
    },
  );

  test.each([
    "evil.example",
    "evil.example:20258",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "10.0.0.1",
    "[::2]",
    "[::1",
    ":80",
  ])("%s is refused, because of DNS rebinding", async (host) => {
    const { address } = await opened();

    for (const path of EVERYTHING) expect((await ask(address, path, { headers: { host } })).status).toBe(421);
  });

  test("an agent on all addresses accepts any name", async () => {
    const { address } = await opened({ listen: ":0" });
    const { port } = new URL(address);

    const reply = await ask(`http://127.0.0.1:${port}`, "/metrics", { headers: { host: "node-7.example:20258" } });

    expect(reply.status).toBe(200);
  });
});
