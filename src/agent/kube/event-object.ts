import { createHash } from "node:crypto";
import { printable } from "../../report/text.ts";
import { apiTime } from "./api-time.ts";
import type { Draft } from "./event-drafts.ts";

const COMPONENT = "unghost";
/** In bytes; newer ways into the same store refuse longer ones. */
const LONGEST_MESSAGE = 1024;
const LONGEST_INSTANCE = 128;
const LONGEST_NAME = 253;
/** An object without a namespace has its events in this one. */
const NODE_EVENTS = "default";

export interface EventPlace {
  readonly namespace: string;
  readonly name: string;
}

export interface EventTimes {
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly count: number;
}

/** The same for the same reason, object and class, also after a restart: so there is one of them. */
export function eventPlace({ reason, class: classId, pod }: Draft, node: string): EventPlace {
  const about = pod ?? { namespace: NODE_EVENTS, name: node, uid: "" };
  const identity = [reason, classId, about.namespace, about.name, about.uid].join("\n");
  const hash = createHash("sha256").update(identity).digest("hex").slice(0, 16);
  const readable = about.name
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, "-")
    .slice(0, LONGEST_NAME - hash.length - 1)
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "");
  return { namespace: about.namespace, name: `${readable || COMPONENT}.${hash}` };
}

/**
 * An event of the core API and not of events.k8s.io: every kubectl, dashboard and exporter shows its count and times,
 * `kubectl describe` finds it by its object, and one that happens again is patched in one request.
 */
export function eventObject(draft: Draft, node: string, times: EventTimes): object {
  const { reason, pod } = draft;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: eventPlace(draft, node),
    involvedObject:
      pod === undefined
        ? // Kubelet and kubectl know a node's events by its name in place of a uid.
          { apiVersion: "v1", kind: "Node", name: node, uid: node }
        : { apiVersion: "v1", kind: "Pod", ...pod },
    type: reason === "GhostHealed" ? "Normal" : "Warning",
    reason,
    source: { component: COMPONENT, host: node },
    reportingComponent: COMPONENT,
    reportingInstance: node.slice(0, LONGEST_INSTANCE),
    ...eventChange(draft, times),
  };
}

/** What is different each time. */
export function eventChange({ message }: Draft, { firstAt, lastAt, count }: EventTimes): object {
  return {
    message: cutToBytes(printable(message), LONGEST_MESSAGE),
    firstTimestamp: apiTime(firstAt),
    lastTimestamp: apiTime(lastAt),
    count,
  };
}

const ELLIPSIS = "…";

function cutToBytes(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  // What is left of a character that was cut through decodes to replacement characters.
  const kept = bytes.subarray(0, most - Buffer.byteLength(ELLIPSIS)).toString("utf8");
  return `${kept.replace(/\uFFFD+$/, "")}${ELLIPSIS}`;
}
