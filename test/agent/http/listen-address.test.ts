import { networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import { isOpenToNetwork, parseListenAddress } from "../../../src/agent/http/listen-address.ts";
import { ask } from "./ask.ts";
import { opened } from "./opened.ts";

describe("parseListenAddress", () => {
  test.each([
    ["127.0.0.1:20258", { host: "127.0.0.1", port: 20258 }],
    ["[::1]:20258", { host: "::1", port: 20258 }],
    ["[::]:1", { host: "::", port: 1 }],
    ["localhost:65535", { host: "localhost", port: 65535 }],
    [":20258", { host: undefined, port: 20258 }],
    ["[fd00::10]:20258", { host: "fd00::10", port: 20258 }],
    ["[10.0.0.7]:20258", { host: "10.0.0.7", port: 20258 }],
    ["[fe80::1%eth0]:20258", { host: "fe80::1%eth0", port: 20258 }],
    ["fd00::10:20258", { host: "fd00::10", port: 20258 }],
    ["2001:db8:1:2:3:4:5:6:1", { host: "2001:db8:1:2:3:4:5:6", port: 1 }],
  ])("accepts %s", (text, address) => {
    expect(parseListenAddress(text)).toEqual(address);
  });

  test.each([
    "",
    "20258",
    "127.0.0.1",
    "fd00::10:8080",
    "fd00::10",
    "[node-7]:1",
    "[::1]",
    "[::x]:1",
    "127.0.0.1:65536",
    "127.0.0.1:http",
    "a:b:1",
    " :1",
  ])('refuses "%s" with an example', (text) => {
    expect(() => parseListenAddress(text)).toThrow(
      /^cannot listen on ".*Give HOST:PORT, for example 127\.0\.0\.1:20258/,
    );
  });
});

describe("a listen address that cannot be used", () => {
  test("is in use: the message contains the reason", async () => {
    const { address } = await opened();
    const listen = new URL(address).host;

    await expect(opened({ listen })).rejects.toThrow(
      `cannot listen on ${listen}: another program listens there already. End it, or choose another port.`,
    );
  });

  test("belongs to another machine: the message contains the reason", async () => {
    await expect(opened({ listen: "192.0.2.1:0" })).rejects.toThrow(
      "cannot listen on 192.0.2.1:0: this machine has no such address. Choose one of its own.",
    );
  });
});

test("beside one address of the network it serves loopback on the same port; the other addresses stay closed", async () => {
  const own = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === "IPv4" && !one.internal)?.address;
  const { address } = await opened({ listen: `${own ?? "127.0.0.2"}:0` });
  const { port } = new URL(address);

  expect((await ask(address, "/healthz")).status).toBe(200);
  const beside = ask(`http://127.0.0.1:${port}`, "/healthz");
  // 127.0.0.2 is loopback itself: nothing is opened beside it.
  if (own === undefined) await expect(beside).rejects.toThrow("ECONNREFUSED");
  else expect((await beside).status).toBe(200);
  await expect(ask(`http://127.0.0.3:${port}`, "/healthz")).rejects.toThrow("ECONNREFUSED");
});

test("every address of a dual-stack node is served at one port", async () => {
  const { address } = await opened({ listen: "[::]:0" });
  const { port } = new URL(address);

  for (const host of ["127.0.0.1", "[::1]"]) {
    expect((await ask(`http://${host}:${port}`, "/healthz")).status).toBe(200);
  }
});

test("reports the opened address as a URL", async () => {
  expect((await opened()).address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect((await opened({ listen: "[::1]:0" })).address).toMatch(/^http:\/\/\[::1\]:\d+$/);
});

test.each([
  [":20258", undefined, true],
  ["0.0.0.0:20258", undefined, true],
  ["[::]:20258", undefined, true],
  ["10.0.0.7:20258", undefined, true],
  [":20258", "/etc/unghost/token", false],
  ["127.0.0.1:20258", undefined, false],
  ["localhost:20258", undefined, false],
  ["[::1]:20258", undefined, false],
])("listening on %s with the token file %s is open to the network: %s", (listen, tokenFile, isOpen) => {
  expect(isOpenToNetwork(listen, tokenFile)).toBe(isOpen);
});
