import { valueOr } from "../snapshot/source.ts";
import type { LogLine, PodEvent } from "../snapshot/types.ts";
import { envelopeOf } from "./log-envelope.ts";
import type { PendingPod, Reported, ReportedCode } from "./pending.ts";
import type { NodeView } from "./view.ts";

/** One failed call that kubelet, the runtime or the API server reported, and whom it concerns. */
export interface CallReport extends Reported {
  readonly pod?: PendingPod;
  readonly sandboxId?: string;
}

/**
 * How long a failure counts as the present state of a pod that is still wanted. Kubelet gives up RunPodSandbox after
 * four minutes (twice its runtimeRequestTimeout) and retries within seconds: a pod that still fails is reported again
 * within that time and a margin of one minute.
 */
export const REPORT_FRESH_MS = 5 * 60_000;

const cache = new WeakMap<object, readonly CallReport[]>();

/** What failed according to logs and events, oldest first. Read once per snapshot. */
export function callReports({ snapshot }: Pick<NodeView, "snapshot">): readonly CallReport[] {
  const known = cache.get(snapshot);
  if (known !== undefined) return known;
  const lines = valueOr(snapshot.logs, undefined)?.lines ?? [];
  const events = snapshot.kubernetes.source === "api" ? (snapshot.kubernetes.events ?? []) : [];
  const reports = [
    ...lines.flatMap((line) => reportInLine(line, snapshot.observedAt)),
    ...events.flatMap(reportInEvent),
  ].toSorted((one, other) => (one.at?.getTime() ?? 0) - (other.at?.getTime() ?? 0));
  cache.set(snapshot, reports);
  return reports;
}

export function isFresh({ at }: Pick<Reported, "at">, { snapshot }: Pick<NodeView, "snapshot">): boolean {
  return at !== undefined && snapshot.observedAt.getTime() - at.getTime() < REPORT_FRESH_MS;
}

/** Whether a report concerns this pod: by uid where both have one, else by name. */
export function concernsPod({ pod }: CallReport, other: PendingPod): boolean {
  if (pod === undefined) return false;
  if (pod.uid !== undefined && other.uid !== undefined) return pod.uid === other.uid;
  return pod.namespace === other.namespace && pod.name === other.name;
}

/** Cheap, and true for every line that could be a report. */
const MAY_REPORT = /PodSandbox|sandbox for pod|sandbox name|from runtime service failed/i;

function reportInLine({ text }: LogLine, now: Date): readonly CallReport[] {
  if (!MAY_REPORT.test(text)) return [];
  const envelope = envelopeOf(text, now);
  if (envelope === undefined) return [];
  const plain = text.replace(/[\\"]/g, "");
  const operation = operationIn(plain);
  if (operation === undefined || !/fail|error/i.test(plain)) return [];
  const pod = podIn(plain);
  const sandboxId = sandboxIn(plain);
  return [
    {
      by: envelope.by,
      code: codeIn(plain),
      operation,
      ...(envelope.at === undefined ? {} : { at: envelope.at }),
      count: 1,
      message: messageOf(plain),
      ...(pod === undefined ? {} : { pod }),
      ...(sandboxId === undefined ? {} : { sandboxId }),
    },
  ];
}

const EVENT_OPERATIONS: Readonly<Record<string, Reported["operation"]>> = {
  FailedCreatePodSandBox: "create",
  FailedMount: "create",
  FailedAttachVolume: "create",
  FailedKillPod: "remove",
};

function reportInEvent({ namespace, pod, uid, reason, message, count, at }: PodEvent): readonly CallReport[] {
  const operation = EVENT_OPERATIONS[reason];
  if (operation === undefined) return [];
  const plain = message.replace(/[\\"]/g, "");
  const code = reason === "FailedMount" || reason === "FailedAttachVolume" ? "volume" : codeIn(plain);
  const holder = sandboxIn(plain);
  return [
    {
      by: "kubernetes",
      code,
      operation,
      ...(at === undefined ? {} : { at }),
      count,
      message: messageOf(plain),
      pod: { namespace, name: pod, ...(uid === undefined ? {} : { uid }) },
      ...(holder === undefined ? {} : { sandboxId: holder }),
    },
  ];
}

function operationIn(plain: string): Reported["operation"] | undefined {
  if (/KillPodSandbox|StopPodSandbox|RemovePodSandbox/i.test(plain)) return "remove";
  if (/(?:Create|Run)PodSandbox|sandbox for pod|create pod sandbox|reserve sandbox name/i.test(plain)) return "create";
  if (/(?<![A-Za-z])Status from runtime service failed/.test(plain)) return "status";
  return undefined;
}

/** Innermost reason first: a deadline that passed while a name was reserved says less than the reserved name. */
const CODES: readonly (readonly [RegExp, ReportedCode])[] = [
  [/reserve sandbox name|is reserved for/i, "name-reserved"],
  [
    /dial (?:unix|tcp) \S{1,200} connect: (?:no such file|connection refused|permission denied)|daemon not reachable/i,
    "daemon-unreachable",
  ],
  [/deadline ?exceeded|timed out waiting for the condition/i, "deadline-exceeded"],
  [/context cancell?ed|code = Canceled|error code: CANCEL/i, "canceled"],
  [/plugin type=|(?:setup|destroy|tear ?down) (?:pod )?network|\bcni\b/i, "plugin-failed"],
];

function codeIn(plain: string): ReportedCode {
  return CODES.find(([pattern]) => pattern.test(plain))?.[1] ?? "other";
}

const NAME = "[a-z0-9][a-z0-9.-]{0,252}";
const UID = "[0-9A-Za-z-]{1,40}";
const METADATA = new RegExp(`PodSandboxMetadata\\{Name:(${NAME}),Uid:(${UID}),Namespace:(${NAME}),Attempt:(\\d{1,9}),`);
const RESERVED = new RegExp(`name (${NAME})_(${NAME})_(${UID})_(\\d{1,9}): name`);
const KLOG_POD = new RegExp(` pod=(${NAME})/(${NAME})(?: podUID=(?:\\{?)(${UID}))?`);
const POD_WITH_UID = new RegExp(`(?:^|[ :(])(${NAME})_(${NAME})\\((${UID})\\)`);

function podIn(plain: string): PendingPod | undefined {
  const [, name, uid, namespace, attempt] = METADATA.exec(plain) ?? [];
  if (name !== undefined && namespace !== undefined && uid !== undefined)
    return { namespace, name, uid, attempt: Number(attempt) };
  const reserved = RESERVED.exec(plain);
  if (reserved?.[1] !== undefined && reserved[2] !== undefined && reserved[3] !== undefined)
    return { name: reserved[1], namespace: reserved[2], uid: reserved[3], attempt: Number(reserved[4]) };
  const withUid = POD_WITH_UID.exec(plain);
  if (withUid?.[1] !== undefined && withUid[2] !== undefined && withUid[3] !== undefined)
    return { name: withUid[1], namespace: withUid[2], uid: withUid[3] };
  const klog = KLOG_POD.exec(plain);
  if (klog?.[1] === undefined || klog[2] === undefined) return undefined;
  return { namespace: klog[1], name: klog[2], ...(klog[3] === undefined ? {} : { uid: klog[3] }) };
}

const SANDBOX_IDS: readonly RegExp[] = [
  /is reserved for ([0-9a-f]{64})/,
  /podSandboxID=([0-9a-f]{64})/,
  /(?:Stop|Remove)PodSandbox for ([0-9a-f]{64})/,
  /sandbox ([0-9a-f]{64})/,
];

function sandboxIn(plain: string): string | undefined {
  for (const pattern of SANDBOX_IDS) {
    const id = pattern.exec(plain)?.[1];
    if (id !== undefined) return id;
  }
  return undefined;
}

const LONGEST_MESSAGE = 300;
const RPC_ERROR = /rpc error: code = .*/;

/** From the call's own error on; the envelope and the names before it stand in other fields. */
function messageOf(plain: string): string {
  const text = (RPC_ERROR.exec(plain)?.[0] ?? plain).trim();
  return text.length > LONGEST_MESSAGE ? `${text.slice(0, LONGEST_MESSAGE)}…` : text;
}
