import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hostFiles } from "../../src/boot/install/detect.ts";
import { findRuntimeFiles } from "../../src/boot/runtime-files.ts";
import { serviceCommand } from "../../src/boot/service-command.ts";
import { type TempDir, tempDir } from "../support/temp-dir.ts";

let dir: TempDir;
let root: string;
beforeEach(() => {
  dir = tempDir();
  root = dir.path;
});
afterEach(() => dir.remove());

const started = () => serviceCommand("containerd", hostFiles(root));
test("a dangling link to the distribution's programs is named, and no other containerd is borrowed", () => {
  dir.write("/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "");
  dir.write("/usr/bin/containerd", "");
  dir.write("/etc/containerd/config.toml", "");
  mkdirSync(join(root, "/var/lib/rancher/k3s/data"), { recursive: true });
  symlinkSync("0123abcd", join(root, "/var/lib/rancher/k3s/data/current"));

  expect(findRuntimeFiles(root, { binary: undefined, config: undefined, root: undefined }, "/usr/bin")).toMatchObject({
    kind: "none",
    reason: expect.stringContaining("/var/lib/rancher/k3s/data/current is a link that leads nowhere"),
  });
});

const PROGRAM = "/usr/local/bin/containerd";
const UNIT = "/usr/lib/systemd/system/containerd.service";
const DROP_INS = "/etc/systemd/system/containerd.service.d";

describe("command of a unit", () => {
  test.each([
    ["plain", `ExecStart=${PROGRAM}`, []],
    ["with prefixes", `ExecStart=-+${PROGRAM} --log-level debug`, ["--log-level", "debug"]],
    ["under another name", `ExecStart=@${PROGRAM} containerd-main -c /x.toml`, ["-c", "/x.toml"]],
    ["without a shell's expansion", `ExecStart=:${PROGRAM}`, []],
    ["quoted", `ExecStart="${PROGRAM}" --config "/etc/my containerd.toml"`, ["--config", "/etc/my containerd.toml"]],
    ["on two lines", `ExecStart=${PROGRAM} \\\n# why\n  --root /srv`, ["--root", "/srv"]],
    ["after a reset", `ExecStart=/usr/bin/containerd\nExecStart=\nExecStart=${PROGRAM}`, []],
    ["with variables", `Environment="A=/x y" B=1\nExecStart=${PROGRAM} \${A} $B $C`, ["/x y", "1"]],
    ["beside other sections", `ExecStart=${PROGRAM}\n[Install]\nExecStart=/usr/bin/containerd`, []],
  ])("%s", (_how, lines, args) => {
    dir.write(UNIT, `[Unit]\nExecStart=/no\n[Service]\n${lines}\n`);

    expect(started()).toEqual({ kind: "command", from: UNIT, program: PROGRAM, args });
  });

  test("is that of the last drop-in by name, from any directory, without hidden files", () => {
    dir.write(UNIT, "[Service]\nExecStart=/usr/bin/containerd\n");
    dir.write(
      "/usr/lib/systemd/system/containerd.service.d/20-b.conf",
      `[Service]\nExecStart=\nExecStart=${PROGRAM}\n`,
    );
    dir.write(`${DROP_INS}/10-a.conf`, "[Service]\nExecStart=\nExecStart=/opt/a/containerd\n");
    dir.write(
      "/usr/lib/systemd/system/containerd.service.d/30-c.conf",
      "[Service]\nExecStart=\nExecStart=/opt/c/containerd\n",
    );
    symlinkSync("/dev/null", join(root, `${DROP_INS}/30-c.conf`));

    expect(started()).toMatchObject({ program: PROGRAM, from: expect.stringContaining("20-b.conf") });
  });

  test("is that of the unit in /etc, then /run, /usr/local/lib, /usr/lib, /lib", () => {
    const dirs = ["/lib", "/usr/lib", "/usr/local/lib", "/run", "/etc"];
    for (const unitDir of dirs) {
      dir.write(`${unitDir}/systemd/system/containerd.service`, `[Service]\nExecStart=/opt${unitDir}/containerd\n`);

      expect(started()).toMatchObject({ program: `/opt${unitDir}/containerd` });
    }
  });

  test("without a directory is searched in systemd's path", () => {
    dir.write("/usr/bin/containerd", "");
    dir.write("/usr/local/bin/containerd", "");
    dir.write(UNIT, "[Service]\nExecStart=containerd\n");

    expect(started()).toMatchObject({ program: PROGRAM });
  });

  test.each([
    ["no ExecStart", "Type=simple", /no ExecStart/],
    ["two ExecStart", "ExecStart=/a/containerd\nExecStart=/b/containerd", /more than one/],
    ["a variable as program", "ExecStart=${BIN}", /is unknown/],
    ["another root", "RootDirectory=/x\nExecStart=/usr/bin/containerd", /RootDirectory/],
  ])("is unknown for a unit with %s", (_what, lines, reason) => {
    dir.write(UNIT, `[Service]\n${lines}\n`);

    expect(started()).toMatchObject({ kind: "unknown", reason: expect.stringMatching(reason) });
  });

  test("is undefined without a unit, or when it is masked", () => {
    expect(started()).toEqual({ kind: "none" });
    dir.write(UNIT, `[Service]\nExecStart=${PROGRAM}\n`);
    mkdirSync(join(root, "/etc/systemd/system"), { recursive: true });
    symlinkSync("/dev/null", join(root, "/etc/systemd/system/containerd.service"));

    expect(started()).toEqual({ kind: "none" });
  });

  test("is the init script's command with OpenRC, with conf.d overriding it", () => {
    dir.write("/etc/init.d/containerd", 'command="${CONTAINERD_COMMAND:-/usr/bin/containerd}"\n');
    expect(started()).toMatchObject({ program: "/usr/bin/containerd" });
    dir.write("/etc/conf.d/containerd", `CONTAINERD_COMMAND=${PROGRAM}\n`);
    expect(started()).toMatchObject({ program: PROGRAM });
  });
});

describe("containerd binary for the temporary run", () => {
  const NOTHING_NAMED = { binary: undefined, config: undefined, root: undefined };
  const find = (asked: Partial<typeof NOTHING_NAMED> = {}) =>
    findRuntimeFiles(root, { ...NOTHING_NAMED, ...asked }, "/usr/bin:/bin");
  beforeEach(() => {
    dir.write("/usr/bin/containerd", "");
    dir.write(PROGRAM, "");
    dir.write("/etc/containerd/config.toml", "version = 2\n");
  });

  test.each(["/usr/bin/containerd", PROGRAM])("is the one of the unit, even when both exist: %s", (program) => {
    dir.write(UNIT, `[Service]\nExecStart=${program} --root=/srv/containerd\n`);

    expect(find()).toMatchObject({ files: { binary: program, namedBy: "service", root: "/srv/containerd" } });
  });

  test("is unknown when the unit starts another program", () => {
    dir.write(UNIT, "[Service]\nExecStart=/usr/bin/env containerd\n");

    expect(find()).toMatchObject({ kind: "none", reason: expect.stringContaining("is unknown") });
    expect(find({ binary: PROGRAM } as never)).toMatchObject({ files: { binary: PROGRAM, namedBy: "operator" } });
  });
});
