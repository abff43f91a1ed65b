import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { install, PROGRAM, uninstall } from "./hook-runs.ts";
import { ALPINE, HOSTS, type ScratchHost, scratchHost } from "./scratch-host.ts";

const DROP_IN = "/etc/systemd/system/k3s.service.d/10-unghost.conf";
const AFTER = "/etc/systemd/system/unghost-boot-after.service";
const BINARY = "/usr/local/bin/unghost";

let host: ScratchHost;
afterEach(() => host.remove());

function hostWith(files: Readonly<Record<string, string>>): ScratchHost {
  host = scratchHost({ ...files, [PROGRAM]: "version 1" });
  return host;
}

const k3s = (): ScratchHost => hostWith(HOSTS["k3s-server"]);

describe.each([...Object.entries(HOSTS), ["k3s on Alpine", ALPINE] as const])("on %s", (_name, files) => {
  test("install and uninstall leave no trace", async () => {
    const before = hostWith(files).tree();

    expect(await install(host)).toMatchObject({ code: 0, stderr: "" });
    expect(host.tree()).not.toEqual(before);
    expect(await uninstall(host)).toMatchObject({ code: 0, stderr: "" });

    expect(host.tree()).toEqual(before);
  });

  test("with --agent the agent is a service too; a later install without it removes that service; uninstall leaves no trace", async () => {
    const before = hostWith(files).tree();
    const agentFiles = () => Object.keys(host.tree()).filter((path) => path.includes("unghost-agent"));

    await install(host);
    const hookAlone = host.tree();
    expect(await install(host, { agent: true })).toMatchObject({ code: 0, stderr: "" });
    expect(agentFiles()).not.toEqual([]);
    expect(await install(host)).toMatchObject({ code: 0, stderr: "" });
    expect(host.tree()).toEqual(hookAlone);
    await install(host, { agent: true });
    expect(await uninstall(host)).toMatchObject({ code: 0, stderr: "" });

    expect(host.tree()).toEqual(before);
  });

  test("a second install changes nothing and reports it", async () => {
    hostWith(files);
    await install(host);
    const once = host.tree();

    const again = await install(host);

    expect(again).toMatchObject({ code: 0, stderr: "", commands: [] });
    expect(again.stdout).toContain("Nothing to do: all of it is in place.");
    expect(host.tree()).toEqual(once);
  });

  test("a dry run shows every file and writes none", async () => {
    const before = hostWith(files).tree();

    const { code, stdout } = await install(host, { dryRun: true });

    expect(code).toBe(0);
    expect(stdout).toContain("unghost boot");
    expect(host.tree()).toEqual(before);
  });

  test("a dry run of uninstall removes nothing", async () => {
    hostWith(files);
    await install(host);
    const installed = host.tree();

    const { code, stdout } = await uninstall(host, { dryRun: true });

    expect(code).toBe(0);
    expect(stdout).toMatch(/^remove {5}\/etc\//m);
    expect(host.tree()).toEqual(installed);
  });
});

describe("install", () => {
  test("prints all paths before it writes", async () => {
    const { stdout } = await install(k3s());

    expect(stdout).toContain("This host runs k3s (server) (/etc/systemd/system/k3s.service) under systemd.");
    for (const path of [BINARY, DROP_IN, AFTER]) expect(stdout).toMatch(new RegExp(`^write +${path}`, "m"));
  });

  test("writes a comment into the file that explains it", async () => {
    await install(k3s());

    expect(host.read(DROP_IN)).toMatch(/^# Written by `unghost install`, removed by `unghost uninstall`\./);
    expect(host.read(DROP_IN)).toContain("After a power cut");
  });

  test("passes the arguments for the hook, safely quoted", async () => {
    await install(k3s(), { bootArgs: ["--node", 'a "b" $c %d'], deadlineSeconds: 20, stateDir: "/srv/unghost" });

    expect(host.read(DROP_IN)).toContain(
      ' sh /usr/local/bin/unghost boot --deadline 20s --state-dir /srv/unghost --node "a \\"b\\" $$c %%d"\n',
    );
    expect(host.read(DROP_IN)).toContain("\nExecStartPre=-/usr/bin/env timeout -k 10 50 sh -c ");
  });

  test("with --keep starts the keeper with the runtime, hardened; without it removes the keeper", async () => {
    const keep = "/etc/systemd/system/unghost-keep.service";
    await install(k3s(), { keep: true });

    expect(host.read(keep)).toContain("\nExecStart=/usr/local/bin/unghost keep\n");
    expect(host.read(keep)).toContain("\nProtectSystem=strict\n");
    expect(host.read(DROP_IN)).toMatch(/^Wants=.* unghost-keep\.service$/m);
    await install(host);
    expect(host.tree()).not.toHaveProperty(keep.slice(1));
    expect(host.read(DROP_IN)).not.toContain("unghost-keep");
  });

  test("with --keep supervises the keeper under OpenRC", async () => {
    hostWith(ALPINE);

    await install(host, { keep: true });

    const script = host.read("/etc/init.d/unghost-keep");
    expect(script).toContain('supervisor=supervise-daemon\ncommand=/usr/local/bin/unghost\ncommand_args="keep"\n');
    expect(Object.keys(host.tree())).toContain("etc/runlevels/default/unghost-keep");
  });

  test("installs readable files whatever the umask, and executable ones", async () => {
    const umask = process.umask(0o077);
    try {
      await install(k3s());
    } finally {
      process.umask(umask);
    }

    expect(statSync(join(host.root, DROP_IN)).mode & 0o777).toBe(0o644);
    expect(statSync(join(host.root, BINARY)).mode & 0o777).toBe(0o755);
  });

  test("runs before k3s under OpenRC, in valid shell scripts", async () => {
    hostWith(ALPINE);

    await install(host);

    const script = host.read("/etc/init.d/unghost-boot");
    expect(script).toMatch(/^#!\/sbin\/openrc-run\n# Written by/);
    expect(script).toMatch(/^\tbefore k3s$/m);
    expect(host.read("/etc/init.d/unghost-boot-after")).toMatch(/^\tafter k3s$/m);
    expect(host.tree()["etc/runlevels/default/unghost-boot"]).toBe("-> /etc/init.d/unghost-boot");
    for (const name of ["unghost-boot", "unghost-boot-after"]) {
      execFileSync("sh", ["-n", join(host.root, "etc/init.d", name)]);
    }
  });

  test("leaves the time before CRI-O to CRI-O, and prints why", async () => {
    const { stdout } = await install(hostWith(HOSTS["cri-o"]));

    expect(stdout).toContain("CRI-O detects a reboot");
    const paths = Object.keys(host.tree()).filter((path) => path.includes("unghost"));
    expect(paths.filter((path) => path.endsWith(".service"))).toEqual([AFTER.slice(1)]);
  });

  test.each([
    ["nixos", "ID=nixos\n", ' sh ${unghost} boot --deadline 60s" ];'],
    ["talos", "ID=talos\n", "kind: ExtensionServiceConfig"],
  ])("prints and does not write on %s", async (_name, release, expected) => {
    const before = hostWith({ "/etc/os-release": release }).tree();

    const { code, stdout } = await install(host);

    expect(code).toBe(0);
    expect(stdout).toContain(expected);
    expect(host.tree()).toEqual(before);
  });

  test("removes the files for another distribution on the same host", async () => {
    await install(k3s());
    rmSync(join(host.root, "etc/systemd/system/k3s.service"));
    for (const [path, text] of Object.entries(HOSTS.containerd)) host.write(path, text);

    expect((await install(host)).stdout).toMatch(new RegExp(`^remove +${DROP_IN}$`, "m"));

    expect(existsSync(join(host.root, DROP_IN))).toBe(false);
    expect(existsSync(join(host.root, "etc/systemd/system/containerd.service.d/10-unghost.conf"))).toBe(true);
  });

  test("stays inside the host's root when a link leads out of it", async () => {
    k3s();
    mkdirSync(join(host.root, "real/systemd"), { recursive: true });
    rmSync(join(host.root, "etc/systemd"), { recursive: true });
    host.link("/etc/systemd", "/real/systemd");
    host.write("/real/systemd/system/k3s.service", "[Service]\nExecStart=/usr/local/bin/k3s server\n");

    expect((await install(host)).code).toBe(0);

    expect(existsSync(join(host.root, "real/systemd/system/k3s.service.d/10-unghost.conf"))).toBe(true);
  });
});

describe("exit code", () => {
  test("2 when no distribution is found, with the searched directories", async () => {
    const { code, stderr } = await install(hostWith({}));

    expect(code).toBe(2);
    expect(stderr).toContain("/etc/systemd/system");
    expect(stderr).toContain("--distribution");
  });

  test("64 for an unknown distribution", async () => {
    const { code, stderr } = await install(k3s(), { distribution: "k4s" });

    expect(code).toBe(64);
    expect(stderr).toContain("k3s-server");
  });

  test("1 when a file cannot be written; the next run completes it", async () => {
    k3s().write("/usr/local/bin", "a file where a directory belongs");

    const { code, stderr } = await install(host);
    expect(code).toBe(1);
    expect(stderr).toContain(BINARY);
    expect(existsSync(join(host.root, DROP_IN))).toBe(false);

    rmSync(join(host.root, "usr/local/bin"));
    expect((await install(host)).code).toBe(0);
  });

  test("3 when the operator declines, with nothing changed", async () => {
    const before = k3s().tree();

    expect(await install(host, { terminal: true, answer: "no" })).toMatchObject({ code: 3 });
    expect(host.tree()).toEqual(before);
    expect(await install(host, { terminal: true, answer: "yes" })).toMatchObject({ code: 0 });
    expect(await uninstall(host, { terminal: true, answer: "no" })).toMatchObject({ code: 3 });
    expect(await uninstall(host, { terminal: true, yes: true })).toMatchObject({ code: 0 });
  });

  test("lists the commands to run when systemd is not running", async () => {
    const { stdout, commands } = await install(k3s(), { agent: true });

    expect(commands).toEqual([]);
    expect(stdout).toContain("run: systemctl daemon-reload && systemctl restart unghost-agent.service");
  });
});

test.each([
  [undefined, /^No Kubernetes distribution was found in \/etc.* --distribution \(k3s, rke2, .*talos\)\.\n$/],
  ["k3s", /^No service of k3s was found in \/etc.* --distribution \(k3s-server, k3s-agent\)\.\n$/],
])("a host without Kubernetes, with --distribution %s, is asked for a valid one", async (chosen, message) => {
  hostWith({ "/usr/lib/systemd/systemd": "" });

  const { code, stderr } = await install(host, chosen === undefined ? {} : { distribution: chosen });

  expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
});
