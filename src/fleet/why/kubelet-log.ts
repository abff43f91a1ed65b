import { truncate } from "../../host/text.ts";
import { KubeError, orKubeError } from "../../kube/errors.ts";
import type { OpenApi } from "../one-shot/run.ts";
import type { Warning, WhyFacts } from "./facts.ts";
import { meaningOf } from "./message.ts";

/** A laptop does not wait longer for one node. */
const LOG_MS = 5000;
const MOST_BYTES = 4 * 1024 * 1024;
const MOST_LINES = 300;
const SINCE_MS = 60 * 60_000;
const LONGEST_LINE = 1000;

/** Which event kubelet would write for such a line. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/KillPodSandbox|StopPodSandbox|failed to (?:stop|remove) sandbox/i, "FailedKillPod"],
  [/CreatePodSandbox|RunPodSandbox|reserve sandbox name/i, "FailedCreatePodSandBox"],
  [/AttachVolume/, "FailedAttachVolume"],
  [/MountVolume|WaitForAttach|unmounted volumes|MapVolume/, "FailedMount"],
];

/**
 * The facts with what kubelet's log on the node shows of the pod, by the NodeLogQuery of Kubernetes: for a pod whose
 * events have expired, or cannot be read. The role for it is unghost-node-logs. Without it, or where the node has the
 * query switched off, the facts stay, with that as what was not read.
 */
export async function withKubeletLog(facts: WhyFacts, open: OpenApi): Promise<WhyFacts> {
  const { pod, now } = facts;
  const node = pod?.spec.nodeName;
  if (pod === undefined || !node) return facts;
  const query = new URLSearchParams({
    query: "kubelet",
    pattern: pod.metadata.uid,
    tailLines: String(MOST_LINES),
    sinceTime: new Date(now.getTime() - SINCE_MS).toISOString(),
  });
  const path = `/api/v1/nodes/${encodeURIComponent(node)}/proxy/logs/?`;
  const chosen = await orKubeError(readText(open, path + query.toString()));
  // A node without journald has kubelet's log in a file, of which kubelet selects nothing.
  const isFile = typeof chosen === "string" && chosen.includes(ONLY_WHOLE);
  const text = isFile ? await orKubeError(readText(open, `${path}query=kubelet`)) : chosen;
  if (text instanceof KubeError) return unread(facts, node, text.kind === "forbidden" ? FORBIDDEN : text.message);
  // Without the query, kubelet answers with a page that lists its directory of logs.
  if (/^\s*<(?:!doctype|html|pre)/i.test(text)) return unread(facts, node, "enableSystemLogQuery is off there");
  const warnings = text.split("\n").flatMap((line) => warningIn(line, node, pod.metadata.uid));
  // The newest first, like events.
  return { ...facts, warnings: [...facts.warnings, ...warnings.toReversed()] };
}

const ONLY_WHOLE = "query resolved to log files";
const FORBIDDEN = "the role unghost-node-logs would allow it";

function unread(facts: WhyFacts, node: string, why: string): WhyFacts {
  return { ...facts, unreadLog: `kubelet's log on ${node}: ${why}` };
}

async function readText(open: OpenApi, path: string): Promise<string> {
  const api = open(LOG_MS);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of api.stream(path, AbortSignal.timeout(LOG_MS))) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MOST_BYTES) break;
    }
    return Buffer.concat(chunks).subarray(0, MOST_BYTES).toString("utf8");
  } finally {
    api.close();
  }
}

/** Only lines that name the pod, and whose failure is known by its words. */
function warningIn(line: string, node: string, uid: string): readonly Warning[] {
  if (!line.includes(uid)) return [];
  const [, reason] = REASONS.find(([words]) => words.test(line)) ?? [];
  if (reason === undefined || meaningOf(line).kind === "unknown") return [];
  return [
    {
      by: `kubelet's log on ${node}`,
      about: `Pod/${uid}`,
      uid,
      reason,
      message: truncate(line, LONGEST_LINE),
      count: 1,
    },
  ];
}
