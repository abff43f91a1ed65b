import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { tempDir } from "../../support/temp-dir.ts";

/** A root to install into, with the files that identify a distribution. */
export interface ScratchHost {
  readonly root: string;
  write(path: string, text: string): void;
  read(path: string): string;
  link(path: string, target: string): void;
  /** Every path below the root with its content, mode and kind. */
  tree(): Readonly<Record<string, string>>;
  remove(): void;
}

export function scratchHost(files: Readonly<Record<string, string>>): ScratchHost {
  const dir = tempDir();
  for (const [path, text] of Object.entries(files)) dir.write(path, text);
  return {
    root: dir.path,
    write: (path, text) => void dir.write(path, text),
    read: (path) => readFileSync(join(dir.path, path), "utf8"),
    link: (path, target) => {
      mkdirSync(dirname(join(dir.path, path)), { recursive: true });
      symlinkSync(target, join(dir.path, path));
    },
    tree: () => treeOf(dir.path),
    remove: () => dir.remove(),
  };
}

function treeOf(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" })) {
    const path = join(root, name);
    const stats = lstatSync(path);
    const mode = (stats.mode & 0o7777).toString(8);
    if (stats.isSymbolicLink()) found[name] = `-> ${readlinkSync(path)}`;
    else found[name] = stats.isDirectory() ? `directory ${mode}` : `${mode} ${readFileSync(path, "utf8")}`;
  }
  return found;
}

const SYSTEMD = { "/usr/lib/systemd/systemd": "", "/etc/os-release": 'ID=debian\nVERSION_ID="12"\n' };

function service(command: string, more = ""): string {
  return `[Unit]\nDescription=For a test\n[Service]\n${more}ExecStart=${command}\n`;
}

const EMBEDDED = "Type=notify\nKillMode=process\nTimeoutStartSec=0\nExecStartPre=-/sbin/modprobe overlay\n";
const KUBELET = { "/usr/lib/systemd/system/kubelet.service": service("/usr/bin/kubelet") };

/** The files of each distribution, by install's name. */
export const HOSTS = {
  "k3s-server": {
    ...SYSTEMD,
    "/etc/systemd/system/k3s.service": service("/usr/local/bin/k3s \\\n    server \\\n", EMBEDDED),
  },
  "k3s-agent": {
    ...SYSTEMD,
    "/etc/systemd/system/k3s-agent.service": service("/usr/local/bin/k3s \\\n    agent \\\n", EMBEDDED),
  },
  "rke2-server": {
    ...SYSTEMD,
    "/usr/local/lib/systemd/system/rke2-agent.service": service("/usr/local/bin/rke2 agent", EMBEDDED),
    "/usr/local/lib/systemd/system/rke2-server.service": service("/usr/local/bin/rke2 server", EMBEDDED),
    "/etc/systemd/system/multi-user.target.wants/rke2-server.service": "",
  },
  "rke2-agent": { ...SYSTEMD, "/usr/lib/systemd/system/rke2-agent.service": service("/usr/bin/rke2 agent", EMBEDDED) },
  "k0s-controller": {
    ...SYSTEMD,
    "/etc/systemd/system/k0scontroller.service": service("/usr/local/bin/k0s controller --single=true", EMBEDDED),
  },
  "k0s-worker": { ...SYSTEMD, "/etc/systemd/system/k0sworker.service": service("/usr/local/bin/k0s worker", EMBEDDED) },
  microk8s: {
    ...SYSTEMD,
    "/etc/systemd/system/snap.microk8s.daemon-containerd.service": service(
      "/usr/bin/snap run microk8s.daemon-containerd",
    ),
    "/etc/systemd/system/snap.microk8s.daemon-kubelite.service": service("/usr/bin/snap run microk8s.daemon-kubelite"),
  },
  containerd: {
    ...SYSTEMD,
    ...KUBELET,
    "/usr/lib/systemd/system/containerd.service": service("/usr/bin/containerd", "Type=notify\nKillMode=process\n"),
  },
  "cri-o": {
    ...SYSTEMD,
    ...KUBELET,
    "/usr/lib/systemd/system/crio.service": service("/usr/bin/crio", "Type=notify\n"),
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;

export const ALPINE = {
  "/etc/os-release": "ID=alpine\n",
  "/sbin/openrc-run": "",
  "/etc/runlevels/default/.keep": "",
  "/etc/init.d/k3s": '#!/sbin/openrc-run\ncommand=/usr/local/bin/k3s\ncommand_args="server >>/var/log/k3s.log"\n',
} as const;
