import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { resolveOnHost } from "../snapshot/host-paths.ts";

/** Where a distribution keeps its own containerd: what is borrowed before it starts. */
export interface RuntimeFiles {
  readonly name: string;
  readonly binary: string;
  readonly config: string;
  readonly root: string;
}

const KNOWN: readonly RuntimeFiles[] = [
  {
    name: "k3s",
    binary: "/var/lib/rancher/k3s/data/current/bin/containerd",
    config: "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    root: "/var/lib/rancher/k3s/agent/containerd",
  },
  {
    name: "rke2",
    binary: "/var/lib/rancher/rke2/bin/containerd",
    config: "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    root: "/var/lib/rancher/rke2/agent/containerd",
  },
  {
    name: "k0s",
    binary: "/var/lib/k0s/bin/containerd",
    config: "/etc/k0s/containerd.toml",
    root: "/var/lib/k0s/containerd",
  },
  {
    name: "microk8s",
    binary: "/snap/microk8s/current/bin/containerd",
    config: "/var/snap/microk8s/current/args/containerd.toml",
    root: "/var/snap/microk8s/common/var/lib/containerd",
  },
  {
    name: "containerd",
    binary: "/usr/bin/containerd",
    config: "/etc/containerd/config.toml",
    root: "/var/lib/containerd",
  },
  {
    name: "containerd",
    binary: "/usr/local/bin/containerd",
    config: "/etc/containerd/config.toml",
    root: "/var/lib/containerd",
  },
];

export interface Asked {
  readonly binary: string | undefined;
  readonly config: string | undefined;
  readonly root: string | undefined;
}

export type FoundFiles =
  | { readonly kind: "found"; readonly files: RuntimeFiles }
  | { readonly kind: "none"; readonly reason: string };

/** What the person said, completed by what is found; a configuration that names its root is believed. */
export function findRuntimeFiles(hostRoot: string, asked: Asked, path: string | undefined): FoundFiles {
  const there = (file: string): boolean => existsSync(resolveOnHost(hostRoot, file, "follow"));
  const known = KNOWN.find((files) => there(files.binary) && there(files.config));
  const binary = asked.binary ?? known?.binary ?? onPath(path, there);
  const config = asked.config ?? known?.config;
  if (binary === undefined) return none("no containerd program was found", "--containerd-bin");
  if (!there(binary)) return none(`there is no ${binary}`, "--containerd-bin");
  if (config === undefined) return none("no configuration of containerd was found", "--containerd-config");
  if (!there(config)) return none(`there is no ${config}`, "--containerd-config");
  const text = readFileSync(resolveOnHost(hostRoot, config, "follow"), "utf8");
  const root = asked.root ?? rootIn(text) ?? known?.root ?? "/var/lib/containerd";
  return { kind: "found", files: { name: known?.name ?? "containerd", binary, config, root } };
}

function none(reason: string, flag: string): FoundFiles {
  return { kind: "none", reason: `${reason}; name it with ${flag}` };
}

function onPath(path: string | undefined, there: (file: string) => boolean): string | undefined {
  return (path ?? "")
    .split(":")
    .filter((dir) => dir.startsWith("/"))
    .map((dir) => join(dir, "containerd"))
    .find(there);
}

/** A top-level `root = "…"`: before the first table. */
function rootIn(config: string): string | undefined {
  const [top = ""] = config.split(/^\s*\[/m);
  return /^\s*root\s*=\s*["']([^"']+)["']/m.exec(top)?.[1];
}
