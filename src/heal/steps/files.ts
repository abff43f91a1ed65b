import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Finding, type Reason, reason } from "../../evidence/finding.ts";
import type { StepOf } from "../../evidence/step.ts";
import { MULTUS, multusVariant } from "../../evidence/versions.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { fileBytes, readRegularFile } from "../../host/safe-fs.ts";
import { describeError, errorCode } from "../../host/source.ts";
import { parseJson } from "../../host/text.ts";
import {
  CORRUPT,
  isJsonObject,
  type Judgement,
  judgeMultusCache,
  judgeResult,
  MULTUS_MARKER,
  OK,
  parseResultName,
} from "../../node/cni-files.ts";
import { parseLease } from "../../node/host-local.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { findReference, notDead, proveDead, stillReferenced } from "../proof/prove.ts";
import { canonicalPath, identifyFile, sha256Of } from "../quarantine/file-identity.ts";
import { quarantineFile } from "../quarantine/quarantine.ts";
import { removeMarker } from "../quarantine/recover.ts";
import { withFlock } from "../state/kernel-lock.ts";
import {
  fileRefused,
  journalRefused,
  notAPlainFile,
  notMoved,
  type Runs,
  reasonFor,
  refused,
  type StepResult,
  type StepTools,
} from "./step-result.ts";

type QuarantineStep = StepOf<"quarantine-file">;

/** Identify, prove, move: a file that changes in between is no longer the proven one. */
export async function quarantineStep(step: QuarantineStep, finding: Finding, tools: StepTools): Promise<StepResult> {
  const expected = await identifyFile(tools.hostRoot, step.path);
  if (!expected.ok) return refused(fileRefused(expected.refusal));
  const objection = await objectionTo(step, tools);
  if (objection !== undefined) return refused(objection);
  const moved = await quarantineFile(tools, { ...reasonFor(finding), path: step.path, expected: expected.value });
  if (moved.outcome === "healed") return { kind: "done", journalId: moved.id, undoable: true };
  return notMoved(moved);
}

async function objectionTo(step: QuarantineStep, tools: StepTools): Promise<Reason | undefined> {
  const [id] = /[0-9a-f]{64}/.exec(basename(step.path)) ?? [];
  if (id === undefined) return reason("names-no-sandbox", `${step.path} names no sandbox`);
  if (step.health === "orphaned") {
    const reference = await findReference(id, tools);
    return reference === undefined ? undefined : stillReferenced(reference);
  }
  if (!isStillBroken(step, tools)) return reason("file-not-broken", `${step.path} is not broken any more`);
  const proof = await proveDead(id, tools);
  return proof.state === "not-dead" ? notDead(proof) : undefined;
}

function isStillBroken({ path, health }: QuarantineStep, tools: StepTools): boolean {
  const file = readRegularFile(resolveOnHost(tools.hostRoot, path, "keep"));
  if (file.kind !== "content") return false;
  if (health === "stripped") return "strippedKeys" in judgeMultusCache(file.text);
  return judge(path, file.text).health === "corrupt";
}

function judge(path: string, text: string): Judgement {
  const name = parseResultName(basename(path));
  if (name !== undefined) return judgeResult(text, name);
  if (basename(dirname(path)) === "flannel") return isJsonObject(parseJson(text)) ? OK : CORRUPT;
  return judgeMultusCache(text);
}

/** Quarantines an address file without an owner, while holding host-local's lock. */
export async function dropEmptyLease(
  { path, networkDir }: StepOf<"drop-empty-lease">,
  finding: Finding,
  tools: StepTools,
): Promise<StepResult> {
  const lock = resolveOnHost(tools.hostRoot, `${networkDir}/lock`, "keep");
  const locked = await withFlock(lock, tools.waits.queryMs, async (): Promise<StepResult> => {
    const expected = await identifyFile(tools.hostRoot, path);
    if (!expected.ok) return { kind: "unneeded" };
    const file = readRegularFile(resolveOnHost(tools.hostRoot, path, "keep"));
    if (file.kind !== "content") return refused(notAPlainFile(path));
    if (parseLease(file.text) !== undefined) return refused(reason("lease-has-owner", `${path} names an owner by now`));
    const moved = await quarantineFile(tools, { ...reasonFor(finding), path, expected: expected.value });
    if (moved.outcome === "healed") return { kind: "done", journalId: moved.id, undoable: true };
    return notMoved(moved);
  });
  return locked.ok ? locked.value : refused(reason("lock-refused", locked.refusal.message));
}

/**
 * Writes the marker where multus reads the sandbox's delegates. It stays as long as the sandbox: every stop and removal
 * runs DEL again, including kubelet's own. A marker that outlives its sandbox is removed as an orphaned cache.
 */
export async function multusMarker(
  { sandboxId, dir }: StepOf<"multus-marker">,
  finding: Finding,
  tools: StepTools,
): Promise<StepResult> {
  // If a marker would have no effect, the removal is tried without one, because it may succeed.
  if (!canUseMarker(tools)) return { kind: "unneeded" };
  const proof = await proveDead(sandboxId, tools);
  if (proof.state === "gone") return { kind: "unneeded" };
  if (proof.state === "not-dead") return refused(notDead(proof));

  const path = canonicalPath(tools.hostRoot, join(dir, sandboxId));
  const sha256 = sha256Of(MULTUS_MARKER);
  const entry = await tools.journal.begin({ ...reasonFor(finding), action: { kind: "write-marker", path, sha256 } });
  if (!entry.ok) return refused(journalRefused(entry.refusal));
  const journalId = entry.value;
  try {
    await writeNew(resolveOnHost(tools.hostRoot, path, "keep"));
  } catch (error) {
    if (errorCode(error) === "EEXIST") {
      const detail = `${path} exists: an earlier marker, or multus has written its cache again`;
      await tools.journal.done(journalId, "skipped", detail);
      return { kind: "unneeded" };
    }
    const why = reason("marker-not-written", `the marker ${path} could not be written: ${describeError(error)}`);
    await tools.journal.done(journalId, "refused", why.text);
    return refused(why, journalId);
  }
  return {
    kind: "done",
    journalId,
    cleanUp: async () => {
      if (await isListed(sandboxId, tools)) {
        await tools.journal.done(journalId, "healed", `The marker ${path} stays until the sandbox is removed.`);
        return;
      }
      const removed = await removeMarker(tools.hostRoot, { path, sha256 });
      // If it could not be removed, the entry stays open: the next run retries and reports it.
      if (removed.how !== "unsettled") await tools.journal.done(journalId, "healed", removed.detail);
    },
  };
}

/** Thin multus reads it since 4.0; an older or unknown version fails with it as without. */
function canUseMarker({ conf, binDirs, hostRoot }: StepTools): boolean {
  if (conf?.multus === undefined || !multusVariant(conf.multus).failedDelBlocksRemoval) return false;
  const major = multusMajor(binDirs.map((dir) => resolveOnHost(hostRoot, join(dir, "multus"), "follow")));
  return (major ?? 0) >= MULTUS.markerReadFrom;
}

/** If the runtime does not answer, the marker stays: it is harmless, and needed as long as the sandbox exists. */
async function isListed(sandboxId: string, { cri, waits }: StepTools): Promise<boolean> {
  try {
    return (await cri.podSandboxState(sandboxId, { timeoutMs: waits.queryMs })) !== undefined;
  } catch (error) {
    if (error instanceof RuntimeError) return true;
    throw error;
  }
}

async function writeNew(path: string): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(path, flags, 0o600);
  try {
    await file.writeFile(MULTUS_MARKER);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Every multus binary is much smaller; a larger file is something else. */
const MAX_BINARY_MIB = 256;

/**
 * The major version of multus, read from the binary: builds without version flags print nothing, but every Go binary
 * contains its module's path, with the major version in it (`multus-cni.v4`).
 */
function multusMajor(candidates: readonly string[]): number | undefined {
  for (const path of candidates) {
    const binary = fileBytes(path, MAX_BINARY_MIB * 1024 * 1024);
    if (binary !== undefined) return majorIn(binary);
  }
  return undefined;
}

function majorIn(binary: Buffer): number | undefined {
  const module = "k8snetworkplumbingwg/multus-cni.v";
  const at = binary.indexOf(module);
  if (at < 0) return undefined;
  const digits = /^\d{1,3}/.exec(binary.toString("latin1", at + module.length, at + module.length + 3));
  return digits === null ? undefined : Number(digits[0]);
}

export const FILE_STEPS = {
  "quarantine-file": quarantineStep,
  "drop-empty-lease": dropEmptyLease,
  "multus-marker": multusMarker,
} satisfies Runs<"files">;
