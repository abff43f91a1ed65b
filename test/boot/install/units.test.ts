import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, type TestContext, test } from "vitest";
import { install, PROGRAM } from "./hook-runs.ts";
import { HOSTS, type ScratchHost, scratchHost } from "./scratch-host.ts";
import { ensureSystemdAnalyze, type SystemdAnalyze } from "./systemd-analyze.ts";

/** A unit as systemd reads it: section -> key -> values. */
type Parsed = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

function parse(text: string): Parsed {
  const sections: Record<string, Record<string, string[]>> = {};
  let section: Record<string, string[]> | undefined;
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const heading = /^\[(\w+)\]$/.exec(line)?.[1];
    if (heading !== undefined) {
      section = sections[heading] ??= {};
      continue;
    }
    const [, key, value] = /^([A-Z]\w*)=(.+)$/.exec(line) ?? [];
    if (key === undefined || value === undefined || section === undefined)
      throw new Error(`not a unit's line: ${line}`);
    (section[key] ??= []).push(value);
  }
  return sections;
}

/** Any of these gives a service its own mount namespace (systemd's exec_needs_mount_namespace). */
const MOUNT_NAMESPACE =
  /^(ProtectSystem|ProtectHome|ProtectKernel\w+|ProtectControlGroups|ProtectProc|ProcSubset|Private(Tmp|Devices|Mounts|IPC)|ReadWritePaths|ReadOnlyPaths|InaccessiblePaths|BindPaths|TemporaryFileSystem|RootDirectory|MountFlags)$/;

const IN_OWN_NAME = String.raw`sh -c "command -v systemd-cat >/dev/null && exec systemd-cat -t unghost \"$$@\"; exec \"$$@\"" sh`;
const EMBEDDED = ["k3s-server", "k3s-agent", "rke2-server", "rke2-agent", "k0s-controller", "k0s-worker"];

let host: ScratchHost;
let units: Readonly<Record<string, Parsed>>;
let dropIn: Parsed;
let runtimeUnit: string;

async function installed(files: Readonly<Record<string, string>>): Promise<void> {
  host = scratchHost({ ...files, [PROGRAM]: "program" });
  expect(await install(host, { agent: true, keep: true })).toMatchObject({ code: 0, stderr: "" });
  const tree = Object.keys(host.tree()).filter((path) => path.startsWith("etc/systemd/system/"));
  const own = tree.filter((path) => /\/unghost-[a-z-]+\.service$/.test(path));
  units = Object.fromEntries(own.map((path) => [path.split("/").at(-1), parse(host.read(path))]));
  const found = tree.filter((path) => path.endsWith("/10-unghost.conf"));
  expect(found).toHaveLength(1);
  runtimeUnit = found[0]?.split("/").at(-2)?.replace(/\.d$/, "") ?? "";
  dropIn = parse(host.read(found[0] ?? ""));
}

afterEach(() => host.remove());

describe.each(Object.entries(HOSTS))("units for %s", (name, files) => {
  beforeEach(() => installed(files));

  test("cannot prevent the runtime from starting", () => {
    const all = [dropIn, ...Object.values(units)];
    for (const { Unit = {}, Service = {}, Install } of all) {
      for (const key of ["Requires", "BindsTo", "Requisite", "OnFailure"]) expect(Unit).not.toHaveProperty(key);
      expect(Service["ExecStartPost"]).toBeUndefined();
      expect(Install).toBeUndefined();
    }
    const wantedByRuntime = Object.keys(units).filter((unit) => unit !== "unghost-agent.service");
    expect(dropIn["Unit"]?.["Wants"]?.join(" ").split(" ").sort()).toEqual(wantedByRuntime.sort());
    // A stopped agent would come back with each restart of the runtime.
    expect(host.read("/etc/systemd/system/multi-user.target.d/10-unghost-agent.conf")).toContain(
      "\nWants=unghost-agent.service\n",
    );
  });

  test("terminate on their own", () => {
    expect(units["unghost-boot-after.service"]?.["Service"]).toMatchObject({
      Type: ["simple"],
      RuntimeMaxSec: ["330s"],
    });
    const before = units["unghost-boot.service"];
    if (before !== undefined) expect(before["Service"]).toMatchObject({ Type: ["oneshot"], TimeoutStartSec: ["90s"] });
  });

  test("heal in the host's mount namespace, without MemoryDenyWriteExecute", () => {
    for (const unit of ["unghost-boot.service", "unghost-boot-after.service"]) {
      const keys = Object.keys(units[unit]?.["Service"] ?? {});
      expect(keys.filter((key) => MOUNT_NAMESPACE.test(key))).toEqual([]);
    }
    for (const { Service = {} } of Object.values(units)) expect(Service).not.toHaveProperty("MemoryDenyWriteExecute");
  });

  test(EMBEDDED.includes(name) ? "heal inside the unit, whatever becomes of it" : "heal outside the unit", () => {
    const steps = dropIn["Service"]?.["ExecStartPre"];
    expect(steps).toEqual(
      EMBEDDED.includes(name)
        ? [`-/usr/bin/env timeout -k 10 90 ${IN_OWN_NAME} /usr/local/bin/unghost boot --deadline 60s`]
        : undefined,
    );
    expect(Object.keys(units).includes("unghost-boot.service")).toBe(name === "containerd" || name === "microk8s");
    if (name === "containerd" || name === "microk8s") {
      expect(units["unghost-boot.service"]?.["Unit"]?.["Before"]?.[0]?.split(" ")).toContain(runtimeUnit);
    }
  });

  test("wait for the socket, not for a cluster that a ghost may block", () => {
    const after = units["unghost-boot-after.service"]?.["Unit"]?.["After"]?.join(" ").split(" ") ?? [];
    expect(after.includes(runtimeUnit)).toBe(!EMBEDDED.includes(name));
  });
});

describe("systemd-analyze", () => {
  let analyze: SystemdAnalyze | string;
  beforeAll(async () => {
    analyze = await ensureSystemdAnalyze();
  }, 600_000);

  function available(context: TestContext): SystemdAnalyze {
    return typeof analyze === "string" ? context.skip(analyze) : analyze;
  }

  const TARGETS = ["sysinit", "basic", "shutdown", "local-fs", "network", "multi-user"];

  /** The checker follows units to their programs and required targets. */
  function complete(): void {
    mkdirSync(join(host.root, "usr/lib/systemd/system"), { recursive: true });
    for (const target of TARGETS) host.write(`/usr/lib/systemd/system/${target}.target`, "[Unit]\nDescription=x\n");
    for (const path of ["sbin/modprobe", ...["k3s", "rke2", "k0s"].map((name) => `usr/local/bin/${name}`)]) {
      program(path);
    }
    for (const name of ["kubelet", "containerd", "crio", "snap", "rke2"]) program(`usr/bin/${name}`);
  }

  function program(path: string): void {
    mkdirSync(join(host.root, path, ".."), { recursive: true });
    writeFileSync(join(host.root, path), "", { mode: 0o755 });
  }

  test.for(Object.entries(HOSTS))("accepts the units for %s", async ([, files], context) => {
    await installed(files);
    complete();
    const checker = available(context);

    const verified = await checker("verify", "--man=no", `--root=${host.root}`, ...Object.keys(units), runtimeUnit);

    // It exits 0 with warnings on stderr, such as an unknown key.
    expect(verified).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  test("rejects a wrong key", async (context) => {
    await installed(HOSTS.containerd);
    complete();
    const checker = available(context);
    const path = "/etc/systemd/system/unghost-boot.service";
    host.write(path, host.read(path).replace("KillMode=", "KilMode="));

    const verified = await checker("verify", "--man=no", `--root=${host.root}`, "unghost-boot.service");

    expect(verified.stderr).toContain("KilMode");
  });

  test.for([
    // Healing runs other programs as root in the host's namespaces: few rights can be removed.
    ["unghost-boot.service", 7.6],
    ["unghost-boot-after.service", 7.4],
    ["unghost-keep.service", 2.8],
  ] as const)("rates the exposure of %s at most %d", async ([unit, limit], context) => {
    await installed(HOSTS.containerd);
    complete();
    const checker = available(context);

    const rated = await checker("security", "--offline=true", "--no-pager", `--root=${host.root}`, unit);

    const level = /exposure level for \S+: ([\d.]+)/.exec(rated.stdout)?.[1];
    expect(Number(level)).toBeLessThanOrEqual(limit);
  });
});
