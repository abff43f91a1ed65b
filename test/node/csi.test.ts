import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readCsi } from "../../src/node/csi.ts";

const PLUGINS = "/var/lib/kubelet/plugins";
let root = "";
const servers: Server[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "csi-"));
});

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(root, { recursive: true, force: true });
});

function driver(name: string): string {
  const dir = join(root, PLUGINS, name);
  mkdirSync(dir, { recursive: true });
  return dir;
}

function listen(path: string): Promise<Server> {
  const server = createServer();
  servers.push(server);
  return new Promise((resolve) => server.listen(path, () => resolve(server)));
}

function readHere() {
  return readCsi({ root, kubeletRoot: "/var/lib/kubelet", signal: AbortSignal.timeout(20_000) });
}

describe("sockets of CSI drivers", () => {
  test("are distinguished by whether a process listens", async () => {
    await listen(join(driver("listens"), "csi.sock"));
    await listen(join(driver("named"), "plugin.sock"));
    driver("missing");
    driver("kubernetes.io");
    mkdirSync(join(root, "/var/lib/kubelet/plugins_registry/listens-reg.sock"), { recursive: true });

    const found = await readHere();

    expect(found).toMatchObject({ status: "read", oddities: [] });
    const sockets = found.status === "read" ? found.value : [];
    expect(sockets.filter(({ registered }) => registered).map(({ driver: name }) => name)).toEqual(["listens"]);
    expect(sockets.map(({ path, state }) => [path, state]).toSorted()).toEqual([
      [`${PLUGINS}/listens/csi.sock`, "listening"],
      [`${PLUGINS}/missing/csi.sock`, "missing"],
      [`${PLUGINS}/named/plugin.sock`, "listening"],
    ]);
  });

  test("a regular file at the path is odd, and unknown", async () => {
    writeFileSync(join(driver("file"), "csi.sock"), "");

    expect(await readHere()).toMatchObject({
      status: "read",
      value: [],
      oddities: [{ path: `${PLUGINS}/file/csi.sock` }],
    });
  });

  test("a node without CSI drivers has none", async () => {
    expect(await readHere()).toMatchObject({ status: "absent" });
  });
});
