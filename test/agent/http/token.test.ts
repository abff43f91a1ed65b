import { renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { tempDir } from "../../support/temp-dir.ts";
import { scanOf } from "../metrics/agent-state.ts";
import { ask } from "./ask.ts";
import { opened } from "./opened.ts";

const SECRET = ["/", "/metrics", "/api/state", "/api/events", "/nowhere"];
let dir: ReturnType<typeof tempDir>;

beforeEach(() => {
  dir = tempDir();
  writeFileSync(dir.join("token"), "s3cret\n");
});
afterEach(() => dir.remove());

function bearer(token: string): { readonly headers: Record<string, string> } {
  return { headers: { authorization: `Bearer ${token}` } };
}

function basic(credentials: string): { readonly headers: Record<string, string> } {
  return { headers: { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` } };
}

describe("with a token", () => {
  test.each(SECRET)("%s requires it, and the answer describes how a browser and a scraper send it", async (path) => {
    const { address } = await opened({ tokenFile: dir.join("token") });

    const reply = await ask(address, path);

    expect(reply.status).toBe(401);
    expect(reply.headers["www-authenticate"]).toMatch(/^Basic realm=".+", charset="UTF-8", Bearer$/);
  });

  test.each(["/healthz", "/readyz"])("%s needs no token, for kubelet probes", async (path) => {
    const { address, store } = await opened({ tokenFile: dir.join("token") });
    store.update((state) => ({ ...state, scan: scanOf() }));

    expect((await ask(address, path)).status).toBe(200);
  });

  test.each([
    ["as a bearer", bearer("s3cret")],
    ["with any case of the scheme", { headers: { authorization: "bearer s3cret" } }],
    ["as a password without a user", basic(":s3cret")],
    ["as a password of any user", basic("admin:s3cret")],
  ])("is accepted %s", async (_how, question) => {
    const { address } = await opened({ tokenFile: dir.join("token") });

    expect((await ask(address, "/metrics", question)).status).toBe(200);
  });

  test.each([
    ["another token", bearer("secret")],
    ["a prefix of it", bearer("s3cre")],
    ["it with a suffix", bearer("s3cret s3cret")],
    ["an empty token", bearer("")],
    ["it as a user name", basic("s3cret:")],
    ["it without a colon", basic("s3cret")],
    ["another scheme", { headers: { authorization: "Digest s3cret" } }],
    ["no scheme", { headers: { authorization: "s3cret" } }],
  ])("%s is refused", async (_what, question) => {
    const { address } = await opened({ tokenFile: dir.join("token") });

    expect((await ask(address, "/metrics", question)).status).toBe(401);
  });

  test("a new token in the file is valid from the next request on, and the old one is not", async () => {
    const { address } = await opened({ tokenFile: dir.join("token") });
    await ask(address, "/metrics", bearer("s3cret"));

    writeFileSync(dir.join("next"), "0ther");
    renameSync(dir.join("next"), dir.join("token"));

    expect((await ask(address, "/metrics", bearer("s3cret"))).status).toBe(401);
    expect((await ask(address, "/metrics", bearer("0ther"))).status).toBe(200);
  });

  test("follows a link that changes its target, as mounted secrets do", async () => {
    writeFileSync(dir.join("second"), "0ther");
    symlinkSync(dir.join("token"), dir.join("link"));
    const { address } = await opened({ tokenFile: dir.join("link") });

    symlinkSync(dir.join("second"), dir.join("link-next"));
    renameSync(dir.join("link-next"), dir.join("link"));

    expect((await ask(address, "/metrics", bearer("0ther"))).status).toBe(200);
  });

  test("refuses every request while the file is missing or empty", async () => {
    const { address } = await opened({ tokenFile: dir.join("token") });

    rmSync(dir.join("token"));
    const gone = await ask(address, "/metrics", bearer("s3cret"));
    writeFileSync(dir.join("token"), "\n");
    const empty = await ask(address, "/metrics", bearer(""));

    expect(gone).toMatchObject({ status: 503, text: expect.stringContaining("no such file or directory") });
    expect(empty).toMatchObject({ status: 503, text: expect.stringContaining("is empty") });
  });
});

test.each([
  ["is missing", "missing", /cannot read the token file .*missing: there is no such file/],
  ["is empty", "empty", /the token file .*empty is empty/],
])("an agent whose token file %s does not start", async (_why, name, message) => {
  writeFileSync(dir.join("empty"), " \n");

  await expect(opened({ tokenFile: dir.join(name) })).rejects.toThrow(message);
});
