import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import type { CriClient } from "../src/runtime/cri.ts";
import { cacheDir, checkoutDir } from "./cache.ts";
import { type CgroupVersion, defaultCgroup, planCgroups } from "./cgroup.ts";
import { bridgeNetwork, CNI_CONF_FILE, type CniConflist } from "./cni-config.ts";
import type { CommandResult } from "./command.ts";
import { importPauseImage } from "./image-import.ts";
import {
  createLoopDisk,
  createRecordedDisk,
  type LoopDisk,
  type LoopFileSystem,
  type RecordedFileSystem,
  restoreDisk,
} from "./loop-disk.ts";
import { cgroupName, clearNodeDir, createNodeDir, sweepLeftovers } from "./node-dir.ts";
import { createDisk, diskPath, snapshotterFor, writeDiskFile } from "./node-disk.ts";
import { type ExecOptions, execInNode } from "./node-exec.ts";
import { clearAtExit, forgetAtExit } from "./node-exit.ts";
import { nodePower } from "./node-power.ts";
import { nodeRuntime } from "./node-runtime.ts";
import { runtimeSetup } from "./runtime-setup.ts";
import type { RuntimeVersion } from "./runtimes.ts";
import { ensureTools } from "./tools.ts";
import type { CommandWatch } from "./verdict-watch.ts";

export interface NodeOptions {
  /**
   * Defaults to Debian's containerd 1.6. Call ensureContainerd() or ensureCrio() first to check whether another is
   * available.
   */
  readonly runtime?: RuntimeVersion;
  readonly cgroup?: CgroupVersion;
  readonly cni?: CniConflist;
  /** TOML appended to the configuration of containerd, or a drop-in of CRI-O's. */
  readonly runtimeConfig?: string;
  /** More directories of the machine to mount, besides the checkout, the cache and the running program's. */
  readonly visible?: readonly string[];
  /**
   * `directory` (the default) keeps every write through a power cut. A file system on a loop device keeps what was
   * synced, and what the kernel happened to write back; call whyNoLoopDisk() first to check whether it is available.
   * `{ recorded }` keeps every write, too, and their order (lab/recorded-disk.ts); `{ restored }` is a copy of the disk
   * of another node with the same runtime.
   */
  readonly disk?: "directory" | LoopFileSystem | RecordedDisk | RestoredDisk;
  /** Called with every command that is run in the node, and its result. */
  readonly watch?: CommandWatch;
}

export interface RecordedDisk {
  readonly recorded: RecordedFileSystem;
}

export interface RestoredDisk {
  /** The image's path. */
  readonly restored: string;
  readonly fileSystem: RecordedFileSystem;
}

export type LabSignal = "KILL" | "TERM" | "STOP" | "CONT";

/** A private machine with a real container runtime, for fault injection. */
export interface LabNode {
  readonly id: string;
  readonly hostname: string;
  /** Everything of the node on this machine is below this directory. */
  readonly dir: string;
  readonly runtime: RuntimeVersion;
  readonly powered: boolean;
  /** The init's pid on this machine; throws while the power is off. */
  readonly initPid: number;
  /** The runtime's socket as a path of this machine; another one after each boot. */
  readonly socket: string;
  /** The runtime's socket in the node. */
  readonly socketInNode: string;
  /** Directories of the runtime's programs, in the order of PATH. */
  readonly binDirs: readonly string[];
  /** A CRI client for the current boot. */
  readonly cri: CriClient;
  /** The runtime's log as a path of this machine. Inside the node containerd's is /var/log/containerd.log. */
  readonly logPath: string;
  /** The machine's path of a path on the node's disks (/var, /etc, /opt, /root), power on or off. */
  path(inNode: string): string;
  /** The machine's path of any path of the node, including /run and /proc, while the power is on. */
  livePath(inNode: string): string;
  writeFile(inNode: string, content: string | Uint8Array, mode?: number): Promise<void>;
  exec(command: readonly string[], options?: ExecOptions): Promise<CommandResult>;
  /** Like exec, but throws unless the command exited with 0. Returns its output. */
  check(command: readonly string[], options?: ExecOptions): Promise<string>;
  /** Signals a process by its pid in the node. A missing process is not an error. */
  kill(pid: number, signal?: LabSignal): Promise<void>;
  /** Everything in the node is gone at once; disks stay, on a loop device with what was written to them. */
  powerCut(): Promise<void>;
  /** Date.now() of the last cut: nothing reached a loop device since. */
  readonly cutAtMs: number;
  /** Boots under a new boot id. */
  powerOn(options?: { readonly runtime?: boolean }): Promise<void>;
  /** kill -9 of the runtime alone: shims or conmons, and containers, keep running. */
  killRuntime(): Promise<void>;
  /** Stops the runtime like a service manager. */
  stopRuntime(): Promise<void>;
  startRuntime(): Promise<void>;
  restartRuntime(): Promise<void>;
  /** Removes everything, whatever the state of the node; idempotent. */
  destroy(): Promise<void>;
}

export async function startNode(options: NodeOptions = {}): Promise<LabNode> {
  const tools = await ensureTools();
  const version = options.runtime ?? "1.6";
  const { disk = "directory", cgroup = defaultCgroup() } = options;
  const snapshotter = disk === "directory" ? snapshotterFor(tmpdir()) : "overlayfs";
  const { runtimeConfig: extraConfig = "" } = options;
  const setup = await runtimeSetup(version, tools, { snapshotter, cgroup, extraConfig });
  // A failed cleanup of another process's node must not prevent a new one.
  sweepLeftovers();
  const dir = await createNodeDir();
  clearAtExit(dir);
  const hostname = `lab-${dir.id}`;
  const visible = [checkoutDir(), cacheDir(), dirname(process.execPath), ...(options.visible ?? [])];
  const power = nodePower(dir, {
    dir: dir.path,
    hostname,
    busybox: tools.busybox,
    cgroups: planCgroups(cgroupName(dir), cgroup),
    visible: visible.filter((path) => path !== undefined),
  });

  function exec(command: readonly string[], how: ExecOptions = {}): Promise<CommandResult> {
    const run = () => execInNode(power.initPid, setup.binDirs, command, how);
    return options.watch === undefined ? run() : options.watch(node, command, run);
  }

  async function check(command: readonly string[], how: ExecOptions = {}): Promise<string> {
    const result = await exec(command, how);
    if (result.code === 0) return result.stdout;
    throw new Error(`in the lab node, ${command.join(" ")} ended with code ${result.code}: ${result.stderr.trim()}`);
  }

  async function kill(pid: number, signal: LabSignal = "KILL"): Promise<void> {
    await exec(["sh", "-c", `kill -${signal} ${pid}`]);
  }

  const livePath = (inNode: string) => power.livePath(inNode);
  const runtime = nodeRuntime({ livePath, check, kill }, setup);

  async function powerOn(how: { readonly runtime?: boolean } = {}): Promise<void> {
    await power.on();
    if (how.runtime ?? true) await runtime.start();
  }

  let loopDisk: LoopDisk | undefined;
  let cutAtMs = 0;

  async function powerCut(): Promise<void> {
    if (!power.powered) return;
    // First: writes of processes that are being killed must not count.
    await loopDisk?.freeze();
    cutAtMs = Date.now();
    runtime.closeClient();
    await power.cut();
    await loopDisk?.remount();
  }

  async function destroy(): Promise<void> {
    runtime.closeClient();
    await power.cut();
    clearNodeDir(dir);
    forgetAtExit(dir);
  }

  const node: LabNode = {
    id: dir.id,
    hostname,
    dir: dir.path,
    runtime: version,
    get powered() {
      return power.powered;
    },
    get initPid() {
      return power.initPid;
    },
    get socket() {
      return livePath(setup.socket);
    },
    socketInNode: setup.socket,
    binDirs: setup.binDirs,
    get cri() {
      return runtime.cri;
    },
    logPath: diskPath(dir.path, setup.log),
    path: (inNode) => diskPath(dir.path, inNode),
    livePath,
    writeFile: (inNode, content, mode) => writeDiskFile(dir.path, inNode, content, mode),
    exec,
    check,
    kill,
    powerCut,
    get cutAtMs() {
      return cutAtMs;
    },
    powerOn,
    killRuntime: () => runtime.end("KILL"),
    stopRuntime: () => runtime.end("TERM"),
    startRuntime: () => runtime.start(),
    restartRuntime: async () => {
      await runtime.end("TERM");
      await runtime.start();
    },
    destroy,
  };
  try {
    if (typeof disk === "object" && "restored" in disk) {
      await restoreDisk(dir.path, disk.restored, disk.fileSystem);
      await powerOn();
      return node;
    }
    if (typeof disk === "object") await createRecordedDisk(dir.path, disk.recorded);
    else if (disk !== "directory") loopDisk = await createLoopDisk(dir.path, disk);
    await createDisk(dir.path, hostname, tools);
    await mkdir(dirname(node.logPath), { recursive: true });
    for (const [path, content] of Object.entries(setup.files)) {
      await node.writeFile(path, content, content.startsWith("#!") ? 0o755 : 0o644);
    }
    await node.writeFile(CNI_CONF_FILE, JSON.stringify(options.cni ?? bridgeNetwork(), undefined, 2));
    await powerOn();
    await importPauseImage(node, tools.busybox, setup);
    // A real node has been up for long before its power fails: only later writes are at risk.
    if (loopDisk !== undefined) await node.check(["sync", "-f", "/var"]);
    return node;
  } catch (error) {
    await destroy().catch((left: unknown) => {
      const message = "the lab node did not start, and could not be cleared away either";
      throw new AggregateError([error, left], message, { cause: error });
    });
    throw error;
  }
}
