import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import * as v from "valibot";
import { run } from "./command.ts";
import { emptyResultCache, halfWrittenResultCache } from "./faults/result-cache.ts";
import { copyImage, imageOf, mountImage, type RecordedFileSystem, unmountBelow } from "./loop-disk.ts";
import { type LabNode, startNode } from "./node.ts";
import { type LabPod, runPods } from "./pods.ts";
import { blankOf, replayWrites, writtenBytes } from "./recorded-disk.ts";
import { CONTAINERD_CONFIG } from "./runtime-config.ts";

/** What unghost writes is cut off after every single write of the disk, and the next unghost reads what is left. */
export interface CrashPoints {
  readonly fileSystem: RecordedFileSystem;
  /** Writes while unghost worked. */
  readonly points: number;
  readonly checked: number;
  readonly undone: number;
  readonly booted: number;
  readonly failures: readonly string[];
}

export interface CrashPointsOptions {
  readonly unghost: string;
  readonly fileSystem: RecordedFileSystem;
  readonly pods: number;
  /** Checks every nth point; 1 for each. */
  readonly every: number;
  /** After every nth checked point a node boots from the disk, and is healed. */
  readonly bootEvery: number;
  /** After each checked point: a run on a busy machine takes an hour. */
  readonly onChecked?: (checked: number, failures: number) => void;
}

/** A file that unghost moves, or copies before it goes. Positions are those of the log of writes. */
interface Kept {
  /** In the node. */
  readonly path: string;
  readonly content: string;
  /** On the disk from here on. */
  readonly since: number;
}

/** A sandbox of the runtime that unghost removes. */
interface Removed {
  readonly sandboxId: string;
  readonly since: number;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

const AT_ONCE = ["--no-kube", "--min-age", "0s"];
const SANDBOXES = "var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes";
const COMMAND_MS = 60_000;
const WORDS = ["sh", "-c", 'echo "written by $(hostname)"; sleep 1000000000', "main"];

export async function crashPoints(options: CrashPointsOptions): Promise<CrashPoints> {
  const node = await startNode({ runtime: "1.6", disk: { recorded: options.fileSystem } });
  try {
    const work = await recordedWork(node, options, imageOf(node.dir));
    return await checkEach(node, work, options);
  } finally {
    await node.destroy();
  }
}

interface Work {
  readonly kept: readonly Kept[];
  readonly removed: readonly Removed[];
  /** While unghost ran. */
  readonly ranges: readonly Range[];
}

/** A heal through the runtime, an undo, and a heal by the boot hook. */
async function recordedWork(node: LabNode, { unghost, pods }: CrashPointsOptions, image: string): Promise<Work> {
  const kept: Kept[] = [];
  const removed: Removed[] = [];
  const ranges: Range[] = [];
  async function ghosts(name: string): Promise<void> {
    const made = await runPods(node, pods, { name, containers: [{ name: "main", command: WORDS }] });
    await node.powerCut();
    const paths = await Promise.all(made.map((pod, index) => tear(node, pod, index)));
    await node.powerOn({ runtime: false });
    await node.check(["sync"]);
    const since = writtenBytes(image);
    kept.push(...paths.flat().map((path) => ({ path, since, content: readFileSync(node.path(path), "latin1") })));
    removed.push(...made.map(({ sandboxId }) => ({ sandboxId, since })));
  }
  async function recorded(...command: readonly string[]): Promise<void> {
    await node.check(["sync"]);
    const from = writtenBytes(image);
    await node.check([unghost, ...command]);
    await node.check(["sync"]);
    ranges.push({ from, to: writtenBytes(image) });
  }
  await ghosts("healed");
  await node.startRuntime();
  await recorded("heal", "--yes", ...AT_ONCE);
  await recorded("undo", "--last");
  await ghosts("booted");
  await recorded("boot", "--no-kube", "--containerd-config", CONTAINERD_CONFIG);
  return { kept, removed, ranges };
}

/** Of three pods one has an empty and one a half result cache. Returns what may not be lost, as paths in the node. */
async function tear(node: LabNode, pod: LabPod, index: number): Promise<readonly string[]> {
  const torn = await [emptyResultCache, halfWrittenResultCache][index % 3]?.(node, pod);
  const { namespace, name, uid } = pod.ref;
  return [...(torn?.path === undefined ? [] : [torn.path]), `/var/log/pods/${namespace}_${name}_${uid}/main/0.log`];
}

async function checkEach(node: LabNode, work: Work, options: CrashPointsOptions): Promise<CrashPoints> {
  const { fileSystem, every, onChecked } = options;
  const { ranges } = work;
  const end = Math.max(...ranges.map(({ to }) => to));
  const image = imageOf(node.dir);
  // In the node's directory, which is cleared away whatever happens here.
  const dir = await mkdtemp(join(node.dir, "points-"));
  const copy = join(dir, "replayed.img");
  await copyImage(blankOf(image), copy);
  const writes = replayWrites(image, copy);
  const failures: string[] = [];
  let [points, checked, undone, booted] = [0, 0, 0, 0];
  try {
    while (writes.position < end && writes.next()) {
      const { position } = writes;
      if (!ranges.some(({ from, to }) => from < position && position <= to)) continue;
      points += 1;
      if (points % every !== 0) continue;
      const there = workBefore(position, work);
      const found = await atPoint(dir, copy, there, options);
      checked += 1;
      undone += found.undone ? 1 : 0;
      const wrong = [...found.failures];
      if (checked % options.bootEvery === 0) {
        booted += 1;
        wrong.push(...(await nextBoot(copy, there, options)));
      }
      failures.push(...wrong.map((one) => `${fileSystem}, write ${points}: ${one}`));
      onChecked?.(checked, failures.length);
    }
  } finally {
    writes.close();
  }
  return { fileSystem, points, checked, undone, booted, failures };
}

const historySchema = v.object({
  entries: v.array(
    v.object({
      id: v.string(),
      state: v.string(),
      undoable: v.boolean(),
      subject: v.looseObject({ sandboxId: v.optional(v.string()) }),
      action: v.looseObject({ kind: v.string(), path: v.optional(v.string()) }),
    }),
  ),
  problems: v.array(v.unknown()),
});

type Entries = v.InferOutput<typeof historySchema>["entries"];

interface Found {
  readonly failures: readonly string[];
  readonly undone: boolean;
}

function workBefore(position: number, { kept, removed, ranges }: Work): Work {
  const isThere = ({ since }: { readonly since: number }): boolean => since <= position;
  return { kept: kept.filter(isThere), removed: removed.filter(isThere), ranges };
}

/** The disk as the power cut left it, in the hands of the next unghost. */
async function atPoint(dir: string, replayed: string, work: Work, options: CrashPointsOptions): Promise<Found> {
  // A new file each time: mount would take a loop device that still has the last one.
  const image = join(await mkdtemp(join(dir, "point-")), "disk.img");
  const root = join(dir, "disk");
  await copyImage(replayed, image);
  await mkdir(root, { recursive: true });
  await mountImage(image, root, options.fileSystem);
  try {
    return await inspect(root, work, options.unghost);
  } finally {
    unmountBelow(dir);
    await rm(dirname(image), { recursive: true });
  }
}

async function inspect(root: string, { kept, removed }: Work, unghost: string): Promise<Found> {
  const ask = (...words: readonly string[]) =>
    run([unghost, ...words, "--host-root", root, "-o", "json"], { timeoutMs: COMMAND_MS });
  const failures = lost(root, kept);
  const { code, stdout, stderr } = await ask("history");
  if (code !== 0) return { failures: [...failures, `history ends with ${code}: ${stderr.trim()}`], undone: false };
  const { entries, problems } = v.parse(historySchema, JSON.parse(stdout));
  failures.push(...problems.map((problem) => `history: ${JSON.stringify(problem)}`));
  failures.push(...unannounced(root, removed, entries));
  const last = entries.findLast(({ undoable }) => undoable);
  const path = last?.action.path;
  if (last === undefined || path === undefined || existsSync(join(root, path))) return { failures, undone: false };
  const undo = await ask("undo", last.id);
  if (undo.code !== 0) failures.push(`undo ${last.id} ends with ${undo.code}: ${undo.stdout}${undo.stderr}`);
  else if (kept.some((one) => one.path === path && one.content !== contentOf(root, path)))
    failures.push(`undo ${last.id} put back another content of ${path}`);
  return { failures: [...failures, ...lost(root, kept)], undone: undo.code === 0 };
}

/** What has changed although the journal does not announce it. */
function unannounced(root: string, removed: readonly Removed[], entries: Entries): readonly string[] {
  const ids = new Set(entries.map(({ id }) => id));
  const sandboxes = new Set(entries.map(({ subject }) => subject.sandboxId));
  return [
    ...removed
      .filter(({ sandboxId }) => !existsSync(join(root, SANDBOXES, sandboxId)) && !sandboxes.has(sandboxId))
      .map(({ sandboxId }) => `the sandbox ${sandboxId} is gone, and the journal has nothing about it`),
    ...globSync(join(root, "var/lib/unghost/quarantine/*"))
      .filter((path) => !ids.has(basename(path)))
      .map((path) => `the journal has nothing about ${path}`),
  ];
}

/** The machine has power again: its runtime starts, and a heal leaves nothing. */
async function nextBoot(
  image: string,
  { kept }: Work,
  { unghost, fileSystem }: CrashPointsOptions,
): Promise<readonly string[]> {
  const node = await startNode({ runtime: "1.6", disk: { restored: image, fileSystem } });
  try {
    const healed = await node.exec([unghost, "heal", "--yes", ...AT_ONCE]);
    const scanned = await node.exec([unghost, "scan", ...AT_ONCE]);
    return [
      ...(healed.code === 0 ? [] : [`the next heal ends with ${healed.code}: ${healed.stdout}${healed.stderr}`]),
      ...(scanned.code === 0 ? [] : [`the scan after it ends with ${scanned.code}: ${scanned.stdout}`]),
      ...lost(join(node.dir, "disk"), kept),
    ];
  } finally {
    await node.destroy();
  }
}

/** Files that are neither in their place nor in quarantine. */
function lost(root: string, kept: readonly Kept[]): string[] {
  const saved = globSync(join(root, "var/lib/unghost/quarantine/**"))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"));
  return kept
    .filter(({ path, content }) => contentOf(root, path) !== content && !saved.includes(content))
    .map(({ path }) => `${path} is lost`);
}

function contentOf(root: string, path: string): string | undefined {
  const full = join(root, path);
  return existsSync(full) ? readFileSync(full, "latin1") : undefined;
}
