import { randomBytes } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { WATCHING_LAUNCH_SCRIPT } from "../boot.ts";
import { cacheDir } from "../cache.ts";
import { type CgroupVersion, defaultCgroup, planCgroups } from "../cgroup.ts";
import { bridgeNetwork, CNI_CONF_FILE } from "../cni-config.ts";
import type { CommandResult } from "../command.ts";
import { importPauseImage } from "../image-import.ts";
import { cgroupName, clearNodeDir, createNodeDir, sweepLeftovers } from "../node-dir.ts";
import { type ExecOptions, execInNode } from "../node-exec.ts";
import { clearAtExit, forgetAtExit } from "../node-exit.ts";
import { nodePower } from "../node-power.ts";
import { until } from "../poll.ts";
import { CONTAINERD_CONFIG, containerdSetup } from "../runtime-config.ts";
import { ensureTools } from "../tools.ts";
import { SYSTEMD_BOOT_SCRIPT } from "./boot-script.ts";
import type { Layout } from "./layout.ts";
import { ensureSystemdRootfs } from "./rootfs.ts";

/** A machine booted by a real systemd, with real units of a container runtime and a kubelet. */
export interface SystemdNode {
  readonly hostname: string;
  /** The machine's path of a file on the node's disk, power on or off. */
  path(inNode: string): string;
  livePath(inNode: string): string;
  writeFile(inNode: string, content: string, mode?: number): Promise<void>;
  exec(command: readonly string[], options?: ExecOptions): Promise<CommandResult>;
  check(command: readonly string[], options?: ExecOptions): Promise<string>;
  /** Property of a unit, such as ActiveState. */
  show(unit: string, property: string): Promise<string>;
  /** Lines of this boot. */
  journal(...options: readonly string[]): Promise<string>;
  powerCut(): Promise<void>;
  /** `systemctl poweroff`; settles when the machine is off. */
  shutDown(): Promise<void>;
  /** Boots under a new boot id, and settles when systemd answers. */
  powerOn(): Promise<void>;
  destroy(): Promise<void>;
}

/** Only a hang guard. */
const WAIT_MS = 300_000;
/** The path of the downloaded executable. */
export const DOWNLOADED = "/root/unghost";

export async function startSystemdNode(
  layout: Layout,
  program: string,
  cgroup: CgroupVersion = defaultCgroup(),
): Promise<SystemdNode> {
  const tools = await ensureTools();
  const rootfs = await ensureSystemdRootfs();
  if (!rootfs.available) throw new Error(`no node with systemd: ${rootfs.reason}`);
  sweepLeftovers();
  const dir = await createNodeDir();
  clearAtExit(dir);
  const hostname = `lab-${dir.id}`;
  const disk = join(dir.path, "disk");
  const power = nodePower(dir, {
    dir: dir.path,
    hostname,
    busybox: tools.busybox,
    cgroups: planCgroups(cgroupName(dir), cgroup),
    visible: [cacheDir()],
    init: { launch: WATCHING_LAUNCH_SCRIPT, boot: SYSTEMD_BOOT_SCRIPT, env: { LAB_ROOTFS: join(rootfs.path, "root") } },
  });

  const exec: SystemdNode["exec"] = (command, options = {}) => execInNode(power.initPid, [], command, options);

  async function check(command: readonly string[], options: ExecOptions = {}): Promise<string> {
    const result = await exec(command, options);
    if (result.code === 0) return result.stdout;
    throw new Error(`in the lab node, ${command.join(" ")} ended with code ${result.code}: ${result.stderr.trim()}`);
  }

  const path = (inNode: string) => join(disk, resolve("/", inNode));

  async function put(inNode: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
    await mkdir(dirname(path(inNode)), { recursive: true });
    await writeFile(path(inNode), content, { mode });
  }

  const node: SystemdNode = {
    hostname,
    path,
    livePath: (inNode) => power.livePath(inNode),
    // Through the node while it runs: a write below a mounted overlay may not be visible through it.
    writeFile: async (inNode, content, mode = 0o644) => {
      if (!power.powered) return await put(inNode, content, mode);
      const script = 'mkdir -p "$(dirname "$0")" && cat >"$0" && chmod "$1" "$0"';
      await check(["sh", "-c", script, inNode, mode.toString(8)], { stdin: content });
    },
    exec,
    check,
    show: async (unit, property) =>
      (await check(["systemctl", "show", "--value", `--property=${property}`, unit])).trim(),
    journal: (...options) => check(["journalctl", "--boot", "--no-pager", "--output=short-precise", ...options]),
    powerCut: () => power.cut(),
    shutDown: async () => {
      const init = power.initPid;
      await exec(["systemctl", "poweroff"]);
      await until("the machine is off", WAIT_MS, () => (existsSync(`/proc/${init}/root/etc`) ? undefined : true));
      await power.cut();
    },
    powerOn: async () => {
      await power.on();
      await until("systemd answers", WAIT_MS, async () => {
        const { stdout } = await exec(["systemctl", "is-system-running"]);
        return /^(starting|running|degraded)/.test(stdout) ? true : undefined;
      });
    },
    destroy: async () => {
      await power.cut();
      clearNodeDir(dir);
      forgetAtExit(dir);
    },
  };

  try {
    // Not overlayfs: the node's root is one, and no layer of an overlay may be on another.
    const setup = await containerdSetup(layout.containerd, tools, {
      snapshotter: "native",
      cgroup,
      extraConfig: layout.containerdConfig ?? "",
    });
    mkdirSync(path(dirname(DOWNLOADED)), { recursive: true });
    copyFileSync(program, path(DOWNLOADED));
    mkdirSync(path("/opt/cni"), { recursive: true });
    symlinkSync("/usr/lib/cni", path("/opt/cni/bin"));
    await put("/etc/machine-id", `${randomBytes(16).toString("hex")}\n`);
    await put("/etc/hostname", `${hostname}\n`);
    await put("/etc/resolv.conf", "");
    await put(CNI_CONF_FILE, JSON.stringify(bridgeNetwork()));
    const { [CONTAINERD_CONFIG]: config = "", ...programs } = setup.files;
    for (const [file, text] of Object.entries(programs)) await put(file, text, 0o755);
    for (const [file, content] of Object.entries(layout.files(config))) {
      await put(file, content.text, content.mode);
    }
    for (const [link, target] of Object.entries(layout.links)) {
      mkdirSync(dirname(path(link)), { recursive: true });
      symlinkSync(target, path(link));
    }
    await node.powerOn();
    await until("the runtime listens", WAIT_MS, async () =>
      (await exec(["test", "-S", layout.socket])).code === 0 ? true : undefined,
    );
    await importPauseImage(
      {
        socket: power.livePath(layout.socket),
        path: (inNode) => power.livePath(inNode),
        writeFile: (inNode, content) => writeFile(power.livePath(inNode), content),
        check: (command, options) =>
          check(
            command.flatMap((word) => (word === "ctr" ? layout.ctr : [word])),
            options,
          ),
      },
      tools.busybox,
      setup,
    );
    return node;
  } catch (error) {
    await node.destroy();
    throw error;
  }
}
