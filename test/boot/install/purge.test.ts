import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { takeKernelLock } from "../../../src/heal/state/kernel-lock.ts";
import { install, PROGRAM, uninstall } from "./hook-runs.ts";
import { HOSTS, type ScratchHost, scratchHost } from "./scratch-host.ts";

let host: ScratchHost;
beforeEach(async () => {
  host = scratchHost({ ...HOSTS.containerd, [PROGRAM]: "version 1" });
  await install(host);
  host.write("/var/lib/unghost/journal", "");
  mkdirSync(join(host.root, "var/lib/unghost/quarantine"));
  chmodSync(join(host.root, "var/lib/unghost"), 0o700);
});
afterEach(() => host.remove());

const stateIsThere = (): boolean => existsSync(join(host.root, "var/lib/unghost"));

describe("the state directory", () => {
  test("survives uninstall, which reports it", async () => {
    expect((await uninstall(host)).stdout).toContain("The journal and the quarantine in /var/lib/unghost stay.");
    expect(stateIsThere()).toBe(true);
  });

  test("is removed by --purge, even when the rest is gone already", async () => {
    await uninstall(host);

    expect(await uninstall(host, { purge: true })).toMatchObject({ code: 0 });
    expect(stateIsThere()).toBe(false);
    expect(await uninstall(host, { purge: true })).toMatchObject({ code: 0 });
  });

  test("is not purged while the quarantine holds files, unless forced", async () => {
    host.write("/var/lib/unghost/quarantine/01/cache", "the only copy");

    const refused = await uninstall(host, { purge: true });
    expect(refused).toMatchObject({ code: 3, stdout: "" });
    expect(refused.stderr).toContain("unghost undo");
    expect(existsSync(join(host.root, "etc/systemd/system/unghost-boot.service"))).toBe(true);

    expect(await uninstall(host, { purge: true, force: true })).toMatchObject({ code: 0 });
    expect(stateIsThere()).toBe(false);
  });

  test("is not purged while a run holds its lock", async () => {
    const lock = await takeKernelLock(join(host.root, "var/lib/unghost/lock"), 0);

    expect((await uninstall(host, { purge: true })).code).toBe(3);
    expect(stateIsThere()).toBe(true);

    if (lock.kind === "held") lock.release();
    expect((await uninstall(host, { purge: true })).code).toBe(0);
    expect(stateIsThere()).toBe(false);
  });

  test("is not purged when --state-dir names another directory, not even by force", async () => {
    const refused = await uninstall(host, { purge: true, force: true, stateDir: "/etc" });

    expect(refused).toMatchObject({ code: 3 });
    expect(existsSync(join(host.root, "etc/os-release"))).toBe(true);
  });
});
