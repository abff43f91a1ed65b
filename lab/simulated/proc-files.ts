import { randomUUID } from "node:crypto";
import { mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The part of /proc below `root` that a machine with only an init has after a boot: a process table without process 1
 * would count as hidepid.
 */
export function bootProc(root: string, bootedAt: number): void {
  const proc = join(root, "proc");
  mkdirSync(join(proc, "sys/kernel/random"), { recursive: true });
  writeFileSync(join(proc, "sys/kernel/random/boot_id"), `${randomUUID()}\n`);
  writeFileSync(join(proc, "stat"), `cpu  0 0 0 0 0 0 0 0 0 0\nbtime ${Math.floor(bootedAt / 1000)}\n`);
  writeUptime(root, bootedAt);
  writeInit(join(proc, "1"));
  // Every reader finds its own pids in it, as in the /proc of its own pid namespace. Nothing else, because its start
  // time counts from another boot.
  rmSync(join(proc, "self"), { recursive: true, force: true });
  mkdirSync(join(proc, "self"));
  symlinkSync("/proc/self/status", join(proc, "self/status"));
}

/** Renamed into place, so that it is never incomplete. */
export function writeUptime(root: string, bootedAt: number): void {
  const seconds = ((Date.now() - bootedAt) / 1000).toFixed(2);
  const fresh = join(root, "proc/.uptime");
  writeFileSync(fresh, `${seconds} ${seconds}\n`);
  renameSync(fresh, join(root, "proc/uptime"));
}

function writeInit(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(join(dir, "ns"), { recursive: true });
  // pid, name, state, parent, then 17 unused fields; the start time is the 22nd.
  writeFileSync(join(dir, "stat"), `1 (init) S 0 1 1 0 -1 4194560 ${"0 ".repeat(12)}1 0 0\n`);
  writeFileSync(join(dir, "cmdline"), "/sbin/init\0");
  writeFileSync(join(dir, "environ"), "");
  writeFileSync(join(dir, "cgroup"), "0::/init.scope\n");
  const uid = process.getuid?.() ?? 0;
  writeFileSync(join(dir, "status"), `Name:\tinit\nUid:\t${[uid, uid, uid, uid].join("\t")}\n`);
  symlinkSync("net:[4026531840]", join(dir, "ns/net"));
  symlinkSync(readlinkSync("/proc/self/ns/pid"), join(dir, "ns/pid"));
  symlinkSync("mnt:[4026531832]", join(dir, "ns/mnt"));
}
