import { readdirSync, readlinkSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { hostPath, resolveOnHost } from "../../host/paths.ts";
import { whyNotRootsLog } from "../../node/logs.ts";
import { type Outcome, ok, refuse } from "../outcome.ts";
import { type FileIdentity, identify, kindInWords } from "./file-identity.ts";
import { type HeldDirectory, holdDirectory } from "./held-directory.ts";

/** One file of a container's log: the current one, or one that kubelet rotated (`0.log.20240131-101530`, later .gz). */
export interface LogFile {
  readonly name: string;
  readonly identity: FileIdentity;
}

export interface LogDirectory {
  readonly path: string;
  readonly directory: HeldDirectory;
  readonly files: readonly LogFile[];
  /** Entries that are not logs: they have no content that could be lost. */
  readonly skipped: readonly string[];
}

/**
 * A container's log files, with its rotated files: in its own directory and, if the log is a link (as with
 * cri-dockerd), in the directory of its target. Empty if nothing is left. Refuses if a file may not be copied: then it
 * must not be removed either.
 */
export function findLogs(hostRoot: string, logPath: string): Outcome<readonly LogDirectory[]> {
  const own = findIn(hostRoot, logPath);
  if (!own.ok) return own;
  if (own.value === undefined) return ok([]);
  const { link, ...found } = own.value;
  if (link === undefined) return ok([found]);
  const linked = followLink(hostRoot, logPath, link);
  if (!linked.ok) {
    found.directory.close();
    return linked;
  }
  return ok(linked.value === undefined ? [found] : [found, linked.value]);
}

interface Found extends LogDirectory {
  /** The target of the current log, if it is a link. */
  readonly link?: string;
}

function findIn(hostRoot: string, logPath: string): Outcome<Found | undefined> {
  const parent = realDirectory(hostRoot, dirname(logPath));
  if (!parent.ok) return parent;
  const path = parent.value;
  const held = holdDirectory(hostRoot, path);
  if (!held.ok) return held;
  if (held.value === undefined) return ok(undefined);
  const directory = held.value;
  try {
    return ok({ path, directory, ...entriesOf(directory, path, basename(logPath)) });
  } catch (thrown) {
    directory.close();
    throw thrown;
  }
}

function entriesOf(directory: HeldDirectory, path: string, current: string): Omit<Found, "path" | "directory"> {
  const files: LogFile[] = [];
  const skipped: string[] = [];
  let link: string | undefined;
  for (const name of readdirSync(directory.entry("."))) {
    if (name !== current && !name.startsWith(`${current}.`)) continue;
    const found = identify(directory.entry(name));
    if (found.what === "file") files.push({ name, identity: found.identity });
    if (found.what !== "odd") continue;
    if (name === current && found.kind === "symlink") link = readlinkSync(directory.entry(name));
    else skipped.push(`${path}/${name} is ${kindInWords(found.kind)}.`);
  }
  files.sort((one, other) => rank(one, current) - rank(other, current) || newestFirst(one, other));
  return { files, skipped, link };
}

const UNTRUSTED_LINK_NEXT = "Check the link, save the log by hand if it is wanted, remove the link, then heal again.";

/** A link that users other than root could have created may lead anywhere: it is not followed. */
function realDirectory(hostRoot: string, directory: string): Outcome<string> {
  const resolved = posix.join(
    "/",
    posix.relative(hostPath("/", hostRoot), resolveOnHost(hostRoot, directory, "follow")),
  );
  if (resolved === posix.normalize(directory)) return ok(resolved);
  const objection = whyNotRootsLog(hostRoot, directory);
  if (objection === undefined) return ok(resolved);
  return refuse(`${directory} leads through a symbolic link, and ${objection}.`, UNTRUSTED_LINK_NEXT);
}

/** kubelet, containerd and Docker all use such names; no secret has one. */
const LOG_NAME = /\.log(?:\.\S{0,60})?$/;

function followLink(hostRoot: string, logPath: string, link: string): Outcome<LogDirectory | undefined> {
  const target = posix.resolve(dirname(logPath), link);
  const no = (why: string) =>
    refuse(`The log ${logPath} is a symbolic link to ${target}: ${why}.`, UNTRUSTED_LINK_NEXT);
  if (!LOG_NAME.test(basename(target))) return no("that is not the name of a log");
  const objection = whyNotRootsLog(hostRoot, logPath) ?? whyNotRootsLog(hostRoot, target);
  if (objection !== undefined) return no(objection);
  const found = findIn(hostRoot, target);
  if (!found.ok || found.value === undefined) return found;
  const { link: further, ...logs } = found.value;
  if (further === undefined) return ok(logs);
  logs.directory.close();
  return no("that is a symbolic link, too");
}

/** The path of a log file on the node. */
export function pathOf({ path }: LogDirectory, { name }: LogFile): string {
  return join(path, name);
}

function rank(file: LogFile, current: string): number {
  return file.name === current ? 0 : 1;
}

function newestFirst(one: LogFile, other: LogFile): number {
  return Number(other.identity.mtimeNs - one.identity.mtimeNs);
}
