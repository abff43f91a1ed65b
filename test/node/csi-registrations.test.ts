import { chmodSync, mkdirSync } from "node:fs";
import { createServer, type Http2Server } from "node:http2";
import { createServer as createSilentServer, type Server } from "node:net";
import { dirname } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { field, framed } from "../../lab/csi/messages.ts";
import { driversOf, type Registration, readCsi, readRegistrations } from "../../src/node/csi.ts";
import { tempDir } from "./temp-dir.ts";

const KUBELET = "/k";
const PLUGINS = `${KUBELET}/plugins`;
const open: { close(): void }[] = [];
afterEach(() => {
  for (const server of open.splice(0)) server.close();
});

interface Info {
  readonly type?: string;
  readonly name: string;
  readonly endpoint: string;
}

/** Answers GetInfo like node-driver-registrar. */
async function registrar(path: string, { type = "CSIPlugin", name, endpoint }: Info): Promise<void> {
  const server: Http2Server = createServer();
  const sessions = new Set<{ destroy(): void }>();
  server.on("session", (session) => sessions.add(session));
  server.on("stream", (stream, headers) => {
    expect(headers[":path"]).toBe("/pluginregistration.Registration/GetInfo");
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(framed(Buffer.concat([field(1, type), field(2, name), field(3, endpoint), field(4, "1.0.0")])));
  });
  await listen(server, path);
  open.push({ close: () => [...sessions].forEach((session) => session.destroy()) });
}

function listen(server: Server | Http2Server, path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  open.push(server);
  return new Promise((resolve) => server.listen(path, () => resolve()));
}

function at(root: string, name: string): string {
  return `${root}${KUBELET}/plugins_registry/${name}`;
}

describe("drivers registered with kubelet", () => {
  test("returns driver and directory of those that answer, and the file name of all", async () => {
    const root = tempDir();
    await registrar(at(root, "a.example-reg.sock"), { name: "a.example", endpoint: `${PLUGINS}/csi-a/csi.sock` });
    await registrar(at(root, "dev.sock"), { type: "DevicePlugin", name: "gpu", endpoint: "gpu.sock" });
    await registrar(at(root, "evil-reg.sock"), { name: "../../etc", endpoint: "/etc/x.sock" });
    // Accepts the connection and never answers.
    await listen(createSilentServer(), at(root, "b.example-reg.sock"));

    const found = await readRegistrations(root, KUBELET);

    expect(found.toSorted((one, other) => one.fileName.localeCompare(other.fileName))).toEqual([
      { fileName: "a.example", driver: "a.example", dir: `${PLUGINS}/csi-a` },
      { fileName: "b.example" },
      { fileName: "dev" },
      { fileName: "evil" },
    ]);
  });

  test("ignores sockets in a directory that other users may write", async () => {
    const root = tempDir();
    await registrar(at(root, "a.example-reg.sock"), { name: "a.example", endpoint: `${PLUGINS}/csi-a/csi.sock` });
    chmodSync(dirname(at(root, "x")), 0o777);

    expect(await readRegistrations(root, KUBELET)).toEqual([{ fileName: "a.example" }]);
  });
});

describe("driver of a directory", () => {
  const live: Registration = { fileName: "a.example", driver: "a.example", dir: `${PLUGINS}/csi-a` };
  const down: Registration = { fileName: "b.example" };

  test.each<readonly [string, readonly string[], readonly Registration[], Readonly<Record<string, string>>]>([
    ["by its answer", ["csi-a"], [live], { "csi-a": "a.example" }],
    ["by its name", ["b.example"], [down], { "b.example": "b.example" }],
    ["as the only one left", ["csi-a", "csi-b"], [live, down], { "csi-a": "a.example", "csi-b": "b.example" }],
    ["unknown when two are left", ["csi-b", "csi-c"], [down, { fileName: "c.example" }], {}],
    ["unknown when a directory may belong to an uninstalled driver", ["csi-b", "csi-c"], [down], {}],
  ])("%s", (_what, names, registrations, expected) => {
    const dirs = names.map((name) => `${PLUGINS}/${name}`);

    const found = [...driversOf(dirs, registrations)].map(([dir, { driver }]) => [dir, driver]);

    expect(found).toEqual(Object.entries(expected).map(([name, driver]) => [`${PLUGINS}/${name}`, driver]));
  });
});

test("the socket of a plugin that is down has its driver's name, not its directory's", async () => {
  const root = tempDir();
  await registrar(at(root, "a.example-reg.sock"), { name: "a.example", endpoint: `${PLUGINS}/csi-a/csi.sock` });
  await listen(createSilentServer(), `${root}${PLUGINS}/csi-a/csi.sock`);
  mkdirSync(`${root}${PLUGINS}/csi-b`, { recursive: true });
  mkdirSync(at(root, "b.example-reg.sock"));

  const source = await readCsi({ root, kubeletRoot: KUBELET, signal: AbortSignal.timeout(20_000) });

  expect(source.status === "read" ? source.value : []).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ driver: "a.example", dir: `${PLUGINS}/csi-a`, state: "listening" }),
      expect.objectContaining({ driver: "b.example", dir: `${PLUGINS}/csi-b`, state: "missing", registered: true }),
    ]),
  );
});
