import { resolveOnHost } from "../host/paths.ts";
import { type DirEntry, describeKind, failedListing, listDirectory, readRegularFile } from "../host/safe-fs.ts";
import { absent, failed, type Oddity, read, type Source } from "../host/source.ts";
import { printable } from "../host/text.ts";
import { type SandboxId } from "./ids.ts";
import { eachPaced } from "./pace.ts";
import type { FileHealth, MultusFile, ResultFile, ScratchFile } from "./types/cni.ts";

/** A directory of the node with one file per sandbox, by plugins or libcni. */
export interface ScratchDir {
  readonly root: string;
  /** As a path of the node; the facts have this path too. */
  readonly dir: string;
  readonly signal?: AbortSignal;
}

/** The format of the files in such a directory. */
export interface ScratchFormat<Name extends { readonly sandboxId: SandboxId }> {
  readonly parseName: (name: string) => Name | undefined;
  /** Called only for files with content. */
  readonly judge: (text: string, name: Name) => Judgement;
  /** Other entries that belong there. */
  readonly ignore?: (entry: DirEntry) => boolean;
}

export type Judgement =
  | ({ readonly health: "ok" } & Details)
  | { readonly health: "corrupt" }
  | { readonly health: "odd"; readonly reason: string };

/** Further content of an intact file, for formats that have it. */
type Details = Pick<ResultFile, "addresses" | "hasConfig"> & Pick<MultusFile, "isMarker" | "strippedKeys">;

export const OK = { health: "ok" } satisfies Judgement;
export const CORRUPT = { health: "corrupt" } satisfies Judgement;

export async function readScratchDir<Name extends { readonly sandboxId: SandboxId }>(
  where: ScratchDir,
  format: ScratchFormat<Name>,
): Promise<Source<readonly (Name & ScratchFile)[]>> {
  const { root, dir } = where;
  const opened = resolveOnHost(root, dir, "keep");
  const listing = listDirectory(opened);
  if (listing.kind === "absent") return absent(`there is no ${dir}`);
  if (listing.kind === "refused") return failedListing(dir, listing);

  const files: (Name & ScratchFile)[] = [];
  const oddities: Oddity[] = listing.undecodable.map((name) => ({
    path: `${dir}/${name}`,
    reason: "its name is not valid UTF-8",
  }));
  function passOver(entry: DirEntry, reason: string): void {
    oddities.push({ path: `${dir}/${printable(entry.name)}`, reason });
  }

  const finished = await eachPaced(listing.entries, where.signal, (entry) => {
    if (format.ignore?.(entry)) return;
    const name = format.parseName(entry.name);
    if (name === undefined) return passOver(entry, "its name is not one that belongs here");
    if (entry.kind !== "file") return passOver(entry, `is ${describeKind(entry.kind)} where a file belongs`);
    const content = readRegularFile(`${opened}/${entry.name}`);
    if (content.kind === "gone") return;
    if (content.kind === "notRegular") return passOver(entry, content.reason);

    const { reason, ...judged } = judgeRead(content, (text) => format.judge(text, name));
    if (reason !== undefined) passOver(entry, reason);
    const { modifiedAt, size } = content;
    files.push({ ...name, path: `${dir}/${entry.name}`, ...judged, modifiedAt, size });
  });
  if (!finished) return failed(`${dir} was not read to its end in time (${listing.entries.length} entries)`);
  return read(files, oddities);
}

function judgeRead(
  content: { readonly kind: "content"; readonly text: string } | { readonly kind: "closed"; readonly reason: string },
  judge: (text: string) => Judgement,
): { readonly health: FileHealth; readonly reason?: string } & Details {
  if (content.kind === "closed") return { health: "odd", reason: content.reason };
  return content.text === "" ? { health: "empty" } : judge(content.text);
}

export function isJsonObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
