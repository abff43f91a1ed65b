import { existsSync, lstatSync } from "node:fs";
import { basename, join } from "node:path";
import { OWN_CONTAINERDS, PLAIN_CONTAINERD } from "../host/distributions.ts";
import { resolveOnHost } from "../host/paths.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { parseToml } from "../host/toml.ts";
import { hostFiles } from "./install/detect.ts";
import { serviceCommand } from "./service-command.ts";

/** The paths of a distribution's containerd, which is started temporarily before the service. */
export interface RuntimeFiles {
  readonly binary: string;
  readonly config: string;
  readonly root: string;
  /** The source of the program's path: an operator, the service that starts it, or the default. */
  readonly namedBy: "operator" | "service" | "path";
}

/** The directories of packages and of manual installs; the latter come first in every PATH. */
const PLAIN_DIRS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

export interface Asked {
  readonly binary: string | undefined;
  readonly config: string | undefined;
  readonly root: string | undefined;
}

export type FoundFiles =
  | { readonly kind: "found"; readonly files: RuntimeFiles }
  | { readonly kind: "none"; readonly reason: string };

/**
 * The operator's values, then those of the service manager, then default paths. The root in a configuration is used.
 */
export function findRuntimeFiles(hostRoot: string, asked: Asked, path: string | undefined): FoundFiles {
  const there = (file: string): boolean => existsSync(resolveOnHost(hostRoot, file, "follow"));
  const embedded = OWN_CONTAINERDS.find((files) => there(files.binary) && there(files.config));
  const dangling = OWN_CONTAINERDS.filter((files) => there(files.config) && !there(files.binary)).flatMap(
    ({ name, binary }) => danglingLinkOf(hostRoot, binary).map((link) => ({ name, link })),
  )[0];
  if (embedded === undefined && dangling !== undefined && asked.binary === undefined) {
    const { name, link } = dangling;
    return none(`${link} is a link that leads nowhere: ${name} repairs it when it starts`, "--containerd-bin");
  }
  const started = embedded === undefined ? serviceCommand(PLAIN_CONTAINERD.service, hostFiles(hostRoot)) : undefined;
  if (started?.kind === "unknown" && asked.binary === undefined) return none(started.reason, "--containerd-bin");
  const service = started?.kind === "command" ? started : undefined;
  const wrapper = service !== undefined && !basename(service.program).startsWith("containerd") ? service : undefined;
  if (wrapper !== undefined && asked.binary === undefined) {
    return none(
      `${wrapper.from} starts ${wrapper.program}, and which containerd that starts is unknown`,
      "--containerd-bin",
    );
  }
  const placed = embedded?.binary ?? onPath(path, there) ?? onPath(PLAIN_DIRS, there);
  const binary = asked.binary ?? service?.program ?? placed;
  const flags = optionsIn(service?.args ?? []);
  const config =
    asked.config ??
    embedded?.config ??
    flags.config ??
    (there(PLAIN_CONTAINERD.config) ? PLAIN_CONTAINERD.config : undefined);
  if (binary === undefined) return none("no containerd program was found", "--containerd-bin");
  if (!there(binary)) return none(`there is no ${binary}`, "--containerd-bin");
  if (config === undefined) return none("no configuration of containerd was found", "--containerd-config");
  if (!there(config)) return none(`there is no ${config}`, "--containerd-config");
  const file = readRegularFile(resolveOnHost(hostRoot, config, "follow"));
  if (file.kind !== "content") {
    return none(`${config} ${file.kind === "gone" ? "is missing" : file.reason}`, "--containerd-config");
  }
  const parsed = parseToml(file.text);
  if ("problem" in parsed) return none(`${config} is not valid TOML: ${parsed.problem}`, "--containerd-config");
  const { root: configured } = parsed.table;
  const rootInFile = typeof configured === "string" && configured !== "" ? configured : undefined;
  const root = asked.root ?? flags.root ?? rootInFile ?? embedded?.root ?? PLAIN_CONTAINERD.root;
  const namedBy = asked.binary !== undefined ? "operator" : service !== undefined ? "service" : "path";
  return { kind: "found", files: { binary, config, root, namedBy } };
}

/** A link on the way to a missing file: an upgrade was interrupted. */
function danglingLinkOf(hostRoot: string, file: string): readonly string[] {
  const isLink = (path: string) =>
    lstatSync(resolveOnHost(hostRoot, path, "keep"), { throwIfNoEntry: false })?.isSymbolicLink() === true;
  const parts = file.split("/").slice(1);
  const above = parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
  return above.filter((path) => isLink(path) && !existsSync(resolveOnHost(hostRoot, path, "follow")));
}

/** From its command line, which overrides the configuration file. */
function optionsIn(args: readonly string[]): { readonly config?: string; readonly root?: string } {
  const value = (...names: readonly string[]): string | undefined => {
    for (const [index, word] of args.entries()) {
      const [name = "", ...rest] = word.split("=");
      if (names.includes(name)) return rest.length > 0 ? rest.join("=") : args[index + 1];
    }
    return undefined;
  };
  const config = value("--config", "-c", "-config");
  const root = value("--root", "-root");
  return { config, root };
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
