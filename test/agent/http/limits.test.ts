import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { ask } from "./ask.ts";
import { opened } from "./opened.ts";

/** Sends raw bytes and returns the answer until the server closes the connection. */
function sendRaw(address: string, text: string): Promise<string> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    let answered = "";
    const socket = connect(Number(port), hostname, () => socket.write(text));
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

  test.each(["nonsense\r\n\r\n", "GET /metrics HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n"])(
    "%j is answered with an error and a closed connection",
    async (text) => {
      const { address } = await opened();

      expect(await sendRaw(address, text)).toMatch(/^HTTP\/1\.1 (400|505) /);
    },
  );

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
