import { connect } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { ask } from "./ask.ts";
import { opened } from "./opened.ts";

/** Sends raw bytes and returns the answer until the server closes the connection. */
function sendRaw(address: string, sent: string): Promise<string> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    let answered = "";
    const socket = connect(Number(port), hostname, () => socket.write(sent));
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      answered += chunk;
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(answered));
  });
}

describe("malicious and broken clients", () => {
  test("headers beyond 8 KiB are refused", async () => {
    const { address } = await opened();

    expect(await sendRaw(address, `GET / HTTP/1.1\r\nHost: localhost\r\nA: ${"b".repeat(9000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 /,
    );
  });

  test("a request whose headers never end is disconnected", async () => {
    const { address } = await opened();

    expect(await sendRaw(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n")).toMatch(/^HTTP\/1\.1 408 /);
  });

  test.each([
    "nonsense\r\n\r\n",
    "GET /metrics HTTP/1.1\r\n\r\n",
    "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nA : b\r\n\r\n",
  ])("%j is answered with an error and a closed connection", async (text) => {
    const { address } = await opened();

    expect(await sendRaw(address, text)).toMatch(/^HTTP\/1\.1 (400|505) /);
  });

  test("pipelined requests are answered one after the other", async () => {
    const { address } = await opened();
    const paths = ["/healthz", "/nowhere", "/readyz"];
    const requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n`);

    const answers = await sendRaw(address, `${requests.join("\r\n")}Connection: close\r\n\r\n`);

    expect(answers.match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 200", "HTTP/1.1 404", "HTTP/1.1 503"]);
  });

  test("requests that come while an answer is sent are answered, too", async () => {
    const { address } = await opened();
    const { hostname, port } = new URL(address);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
    for (let index = 0; index < 100; index += 1) {
      socket.write(`${request}\r\n`);
      if (index % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    socket.write(`${request}Connection: close\r\n\r\n`);

    expect((await textOf(socket)).match(/^HTTP\/1\.1 200 /gm)).toHaveLength(101);
  });

  test("a connection is closed after requests that were sent far ahead of the answers", async () => {
    const { address } = await opened();

    const answers = await sendRaw(address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000));

    expect(answers.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
    expect(answers).toMatch(/^connection: close\r$/m);
  });

  test("a body is not read: the answer is the last one", async () => {
    const { address } = await opened();
    const hidden = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const head = `POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${hidden.length}\r\n\r\n`;

    const answers = await sendRaw(address, head + hidden);

    expect(answers.match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 405"]);
  });

  test("a request that comes byte by byte is answered", async () => {
    const { address } = await opened();
    const { hostname, port } = new URL(address);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    for (const byte of "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") socket.write(byte);

    expect(await textOf(socket)).toMatch(/\r\n\r\nok\n$/);
  });

  test("a client that ends its side after the request gets the answer", async () => {
    const { address } = await opened();
    const { hostname, port } = new URL(address);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    socket.end("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");

    expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  test("the same server still answers other clients", async () => {
    const { address } = await opened();
    const broken = ["nonsense\r\n\r\n", `GET / HTTP/1.1\r\nHost: localhost\r\nA: ${"b".repeat(9000)}\r\n\r\n`];
    for (const text of broken) expect(await sendRaw(address, text)).toMatch(/^HTTP\/1\.1 4/);

    expect((await ask(address, "/healthz")).status).toBe(200);
  });
});

test("a closed server refuses connections, and a second close does nothing", async () => {
  const { server, address } = await opened();
  await server.close();

  await expect(sendRaw(address, "GET /healthz HTTP/1.1\r\n\r\n")).rejects.toThrow("ECONNREFUSED");
  await expect(server.close()).resolves.toBeUndefined();
});
