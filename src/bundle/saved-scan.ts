import * as v from "valibot";
import { type JsonLimits, jsonMeter } from "../host/json-meter.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import { fromTagged, MAX_DEPTH, toTagged } from "./tagged-json.ts";
import { type Unpacked, unpacked } from "./tar.ts";

/** The entry of a bundle that `scan --from` reads. */
export const SAVED_SCAN = "snapshot.json";

/** What a scan elsewhere needs to be the same scan. */
export interface SavedScan {
  /** Of the unghost that took it. */
  readonly version: string;
  /** By key, as in the configuration file; those that the diagnosis depends on. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** By finding, from the journal. */
  readonly failedHeals: Readonly<Record<string, FailedHeals>>;
  readonly snapshot: Snapshot;
}

const failedHeals = v.object({ times: v.number(), lastAt: v.string(), reason: v.optional(v.string()) });
type FailedHeals = v.InferOutput<typeof failedHeals>;

/** A bundle is for sending: what a mail takes. A scan of thousands of sandboxes has a few megabytes. */
export const LIMITS = { maxBytes: 64 * 1024 * 1024, maxMembers: 1000 } as const;
export const MAX_ARCHIVE_BYTES = 32 * 1024 * 1024;
/** A node with 5,000 sandboxes has some 600,000 values. */
const JSON_LIMITS: JsonLimits = { values: 1_500_000, depth: MAX_DEPTH };

const API_VERSION = "unghost.dev/v1";

export function savedScanDocument(saved: SavedScan): unknown {
  return { apiVersion: API_VERSION, kind: "SavedScan", ...saved, snapshot: toTagged(saved.snapshot) };
}

const source = v.variant("status", [
  v.looseObject({ status: v.literal("read"), value: v.unknown(), oddities: v.array(v.unknown()) }),
  v.looseObject({ status: v.literal("absent"), reason: v.string() }),
  v.looseObject({ status: v.literal("failed"), error: v.looseObject({ message: v.string() }) }),
]);

/** The frame alone: what is inside a source is for the diagnosis to read. */
const frame = v.looseObject({
  node: v.string(),
  observedAt: v.pipe(
    v.date(),
    v.check((date) => !Number.isNaN(date.getTime())),
  ),
  boot: source,
  runtime: v.looseObject({ endpoint: v.string(), reachable: v.boolean(), name: v.string(), version: v.string() }),
  cri: source,
  containerd: source,
  cni: v.looseObject({ conf: source, results: source, multus: source, flannel: source, hostLocal: source }),
  netns: source,
  processes: source,
  logs: source,
  kubernetes: v.looseObject({ source: v.picklist(["api", "kubelet", "none"]) }),
});

const document = v.object({
  apiVersion: v.literal(API_VERSION),
  kind: v.literal("SavedScan"),
  version: v.string(),
  settings: v.record(v.string(), v.unknown()),
  failedHeals: v.record(v.string(), failedHeals),
  snapshot: v.unknown(),
});

export type ReadSavedScan =
  | { readonly ok: true; readonly saved: SavedScan }
  | { readonly ok: false; readonly why: string };

/** From the bytes of a bundle, which may come from anywhere. */
export function readSavedScan(archive: Uint8Array): ReadSavedScan {
  const opened: Unpacked = unpacked(archive, LIMITS);
  if (!opened.ok) return opened;
  const text = opened.members.get(SAVED_SCAN);
  if (text === undefined) return { ok: false, why: `it has no ${SAVED_SCAN}: unghost bundle writes one` };
  const excess = jsonMeter(JSON_LIMITS).add(Buffer.from(text));
  if (excess !== undefined) return { ok: false, why: `its ${SAVED_SCAN} ${excess}` };
  try {
    const saved = v.safeParse(document, JSON.parse(text), { abortEarly: true });
    if (!saved.success)
      return { ok: false, why: `its ${SAVED_SCAN} is not what this version reads: ${placeOf(saved)}` };
    const snapshot = v.safeParse(frame, fromTagged(saved.output.snapshot), { abortEarly: true });
    if (!snapshot.success)
      return { ok: false, why: `its snapshot is not what this version reads: ${placeOf(snapshot)}` };
    // The frame was checked; a wrong value inside makes the diagnosis throw, which its caller reports.
    const { version, settings, failedHeals: failures } = saved.output;
    const snapshotRead = snapshot.output as unknown as Snapshot;
    return { ok: true, saved: { version, settings, failedHeals: failures, snapshot: snapshotRead } };
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof RangeError) {
      return { ok: false, why: `its ${SAVED_SCAN} cannot be parsed: ${thrown.message}` };
    }
    throw thrown;
  }
}

function placeOf({ issues: [issue] }: { readonly issues: readonly [v.BaseIssue<unknown>, ...unknown[]] }): string {
  return `${v.getDotPath(issue) ?? "document"}: ${issue.message}`;
}
