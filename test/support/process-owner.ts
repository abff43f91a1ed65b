import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface OwnerParts {
  readonly uids?: string;
  readonly pidNamespace?: string;
  readonly mountNamespace?: string;
  readonly executable?: string;
  readonly cgroup?: string;
}

/** A process's owner in a fake /proc: by default the user who runs the tests, in the same namespaces as init. */
export function ownProcess(root: string, pid: number, parts: OwnerParts = {}): void {
  const uid = process.getuid?.() ?? 0;
  const dir = join(root, "proc", String(pid));
  mkdirSync(join(dir, "ns"), { recursive: true });
  writeFileSync(
    join(dir, "status"),
    `Name:\tx\nUid:\t${parts.uids ?? [uid, uid, uid, uid].join("\t")}\nGid:\t0\t0\t0\t0\n`,
  );
  writeFileSync(join(dir, "cgroup"), parts.cgroup ?? "0::/system.slice/x.service\n");
  link(parts.pidNamespace ?? "pid:[4026531836]", join(dir, "ns/pid"));
  link(parts.mountNamespace ?? "mnt:[4026531832]", join(dir, "ns/mnt"));
  // A program that root owns on every machine.
  link(parts.executable ?? "/bin/sh", join(dir, "exe"));
}

function link(target: string, path: string): void {
  rmSync(path, { force: true });
  symlinkSync(target, path);
}
