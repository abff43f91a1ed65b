import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { install, PROGRAM, uninstall } from "./hook-runs.ts";
import { HOSTS, type ScratchHost, scratchHost } from "./scratch-host.ts";

const DROP_IN = "/etc/systemd/system/k3s.service.d/10-unghost.conf";
const BINARY = "/usr/local/bin/unghost";

let host: ScratchHost;
afterEach(() => host.remove());

function hostWith(files: Readonly<Record<string, string>>): ScratchHost {
  host = scratchHost({ ...files, [PROGRAM]: "version 1" });
  return host;
}

const k3s = (): ScratchHost => hostWith(HOSTS["k3s-server"]);

describe("modified and foreign files", () => {
  test("a modified file is replaced only by force", async () => {
    await install(k3s());
    const changed = host.read(DROP_IN).replace("60s", "5s");
    host.write(DROP_IN, changed);

    const refused = await install(host);
    expect(refused).toMatchObject({ code: 3 });
    expect(refused.stderr).toContain(`${DROP_IN} was changed by hand`);
    expect(host.read(DROP_IN)).toBe(changed);

    expect((await install(host, { force: true })).code).toBe(0);
    expect(host.read(DROP_IN)).toContain("--deadline 60s");
  });

  test("a foreign file stays, also on uninstall", async () => {
    k3s().write(DROP_IN, "[Service]\n");

    const refused = await install(host);
    expect(refused).toMatchObject({ code: 3 });
    expect(refused.stderr).toContain(`${DROP_IN} was not written by unghost install`);
    expect(existsSync(join(host.root, BINARY))).toBe(false);

    const left = await uninstall(host);
    expect(left).toMatchObject({ code: 1 });
    expect(left.stdout).toContain(`left       ${DROP_IN}`);
    expect(host.read(DROP_IN)).toBe("[Service]\n");
  });

  test("a link to /dev/null, which disables the hook, is respected", async () => {
    k3s().link(DROP_IN, "/dev/null");

    expect((await install(host)).code).toBe(3);
  });

  test("our file of another version is updated without a question", async () => {
    await install(k3s(), { deadlineSeconds: 30 });

    const { code, stdout } = await install(host);

    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^update +${DROP_IN}$`, "m"));
    expect(host.read(DROP_IN)).toContain("--deadline 60s");
  });

  test("a modified file is removed by uninstall", async () => {
    const before = k3s().tree();
    await install(host);
    host.write(DROP_IN, host.read(DROP_IN).replace("60s", "5s"));

    expect((await uninstall(host)).code).toBe(0);
    expect(host.tree()).toEqual(before);
  });

  test("a foreign drop-in keeps its directory", async () => {
    const before = k3s();
    before.write("/etc/systemd/system/k3s.service.d/20-mine.conf", "[Service]\n");
    const tree = before.tree();
    await install(host);

    await uninstall(host);

    expect(host.tree()).toEqual(tree);
  });
});

describe("installed executable", () => {
  test("stays after uninstall when it existed before install", async () => {
    k3s().write(BINARY, "version 1");
    const before = host.tree();

    expect((await install(host)).stdout).toMatch(new RegExp(`^unchanged +${BINARY}$`, "m"));
    await uninstall(host);

    expect(host.tree()).toEqual(before);
  });

  test("of another version, from another source, is replaced only by force", async () => {
    k3s().write(BINARY, "packaged");

    expect((await install(host)).code).toBe(3);
    expect(host.read(BINARY)).toBe("packaged");
    expect((await install(host, { force: true })).code).toBe(0);
    expect(host.read(BINARY)).toBe("version 1");
  });

  test("of an earlier install is updated, and still removed by uninstall", async () => {
    await install(k3s());
    host.write(PROGRAM, "version 2");
    const before = host.tree();

    expect((await install(host)).stdout).toMatch(new RegExp(`^update +${BINARY}`, "m"));
    expect(host.read(BINARY)).toBe("version 2");

    await uninstall(host);
    expect(before["usr/local/bin"]).toBeDefined();
    expect(existsSync(join(host.root, "usr"))).toBe(true);
    expect(existsSync(join(host.root, "usr/local"))).toBe(false);
  });

  test("run from its installed path, still belongs to install", async () => {
    const before = k3s().tree();
    await install(host);

    expect((await install(host, { execPath: join(host.root, BINARY) })).stdout).toContain("Nothing to do");
    await uninstall(host);

    expect(host.tree()).toEqual(before);
  });

  test("replaced manually since is kept, unless forced", async () => {
    await install(k3s());
    host.write(BINARY, "somebody's");

    expect((await uninstall(host)).stdout).toContain(`left       ${BINARY}`);
    expect(host.read(BINARY)).toBe("somebody's");
  });

  test("cannot be an engine that would run any script", async () => {
    const refused = await install(k3s(), { execPath: process.execPath });

    expect(refused).toMatchObject({ code: 3 });
    expect(refused.stderr).toContain("run install from the built executable");
  });
});
