import * as v from "valibot";
import { type Api, getObject } from "../../kube/api.ts";
import { KubeError, orKubeError, unlessError, unlessMissing } from "../../kube/errors.ts";
import { type GhostReportStatus, readGhostReport } from "../../kube/ghost-report.ts";

const text = v.nullish(v.string());

const ConditionSchema = v.object({
  type: v.string(),
  status: v.string(),
  reason: text,
  message: text,
  lastTransitionTime: text,
});
export type Condition = v.InferOutput<typeof ConditionSchema>;

const StateSchema = v.nullish(
  v.object({
    waiting: v.nullish(v.object({ reason: text, message: text })),
    running: v.nullish(v.object({ startedAt: text })),
    terminated: v.nullish(v.object({ reason: text, exitCode: v.nullish(v.number()), message: text, finishedAt: text })),
  }),
);
const statuses = v.nullish(
  v.array(
    v.object({
      name: v.string(),
      ready: v.nullish(v.boolean()),
      restartCount: v.nullish(v.number()),
      state: StateSchema,
      lastState: StateSchema,
    }),
  ),
  [],
);
export type ContainerStatus = NonNullable<v.InferOutput<typeof statuses>>[number];

const PodSchema = v.object({
  metadata: v.object({
    name: v.string(),
    namespace: v.string(),
    uid: v.string(),
    creationTimestamp: text,
    deletionTimestamp: text,
    finalizers: v.nullish(v.array(v.string()), []),
  }),
  spec: v.object({ nodeName: text, schedulingGates: v.nullish(v.array(v.object({ name: v.string() })), []) }),
  status: v.nullish(
    v.object({
      phase: text,
      reason: text,
      message: text,
      conditions: v.nullish(v.array(ConditionSchema), []),
      initContainerStatuses: statuses,
      containerStatuses: statuses,
    }),
  ),
});
export type Pod = v.InferOutput<typeof PodSchema>;

const NodeSchema = v.object({
  metadata: v.object({ name: v.string() }),
  spec: v.nullish(v.object({ unschedulable: v.nullish(v.boolean()) })),
  status: v.nullish(v.object({ conditions: v.nullish(v.array(ConditionSchema), []) })),
});
export type Node = v.InferOutput<typeof NodeSchema>;

const EventSchema = v.object({
  involvedObject: v.object({ kind: text, name: text, uid: text }),
  type: text,
  reason: text,
  message: text,
  count: v.nullish(v.number()),
  source: v.nullish(v.object({ component: text })),
  reportingComponent: text,
  series: v.nullish(v.object({ count: v.nullish(v.number()), lastObservedTime: text })),
  firstTimestamp: text,
  lastTimestamp: text,
  eventTime: text,
  metadata: v.object({ creationTimestamp: text }),
});

/** A warning about the pod, or about the controller that should create it. Anyone who may create events may write one. */
export interface Warning {
  /** Who reports it, such as kubelet. */
  readonly by: string;
  /** Kind and name of what it is about. */
  readonly about: string;
  readonly uid?: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly firstAt?: Date;
  readonly lastAt?: Date;
}

/** All that the API shows of one pod that does not start, or does not end. */
export interface WhyFacts {
  readonly namespace: string;
  readonly name: string;
  /** Missing if it does not exist. */
  readonly pod?: Pod;
  /** Missing without a node, or if the node does not exist. */
  readonly node?: Node;
  readonly report?: GhostReportStatus;
  /** About the pod, the newest first; without a pod, about the controllers that fail to create it. */
  readonly warnings: readonly Warning[];
  /** What could not be read. */
  readonly problems: readonly string[];
  /** Why kubelet's log, which most users may not read, shows nothing. */
  readonly unreadLog?: string;
  readonly now: Date;
}

const MOST_EVENTS = 500;
const MOST_NAMESAKES = 50;

/** In two rounds: the pod with its events, then its node with the report of the agent. */
export async function readWhyFacts(
  api: Api,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  now: Date,
): Promise<WhyFacts> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const [pod, ofPod] = await Promise.all([
    unlessMissing(getObject(api, `${path}/pods/${encodeURIComponent(name)}`, PodSchema, "pod")),
    orKubeError(readWarnings(api, path, `involvedObject.name=${name}`)),
  ]);
  if (pod === undefined) {
    const created = await orKubeError(readWarnings(api, path, "reason=FailedCreate"));
    const warnings = created instanceof KubeError ? [] : created.filter((warning) => concerns(warning, name));
    return { namespace, name, warnings, problems: problemsOf(created), now };
  }
  const [node, report] = await readNode(api, pod.spec.nodeName);
  const warnings = ofPod instanceof KubeError ? [] : ofPod.filter(({ uid }) => uid === pod.metadata.uid);
  return {
    namespace,
    name,
    pod,
    node: unlessError(node),
    report: unlessError(report)?.status,
    warnings,
    problems: [...problemsOf(ofPod), ...problemsOf(node), ...problemsOf(report)],
    now,
  };
}

const NamesSchema = v.object({
  items: v.nullish(v.array(v.object({ metadata: v.object({ namespace: v.string() }) })), []),
});

/** Those that have a pod of this name. */
export async function namespacesOfPod(api: Api, name: string): Promise<readonly string[]> {
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${name}`, limit: String(MOST_NAMESAKES) });
  const { items } = await getObject(api, "/api/v1/pods", NamesSchema, "list of pods", `?${query.toString()}`);
  return items.map(({ metadata }) => metadata.namespace).toSorted();
}

async function readNode(api: Api, name: string | null | undefined) {
  if (!name) return [undefined, undefined] as const;
  return await Promise.all([
    orKubeError(
      unlessMissing(
        getObject(api, `/api/v1/nodes/${encodeURIComponent(name)}`, NodeSchema, "node", "?resourceVersion=0"),
      ),
    ),
    orKubeError(unlessMissing(readGhostReport(api, name))),
  ]);
}

/** `pods "web-0" is forbidden` of a StatefulSet, or a ReplicaSet whose generated names start with the given one. */
function concerns({ about, message }: Warning, name: string): boolean {
  const [, object = ""] = about.split("/");
  return (
    message.includes(`"${name}"`) || object === name || object.startsWith(`${name}-`) || name.startsWith(`${object}-`)
  );
}

async function readWarnings(api: Api, path: string, selector: string): Promise<readonly Warning[]> {
  const query = new URLSearchParams({ fieldSelector: `${selector},type!=Normal`, limit: String(MOST_EVENTS) });
  const list = v.object({ items: v.nullish(v.array(v.unknown()), []) });
  const { items } = await getObject(api, `${path}/events`, list, "list of events", `?${query.toString()}`);
  const warnings = items.flatMap((item) => {
    const event = v.safeParse(EventSchema, item);
    return event.success ? [warningOf(event.output)] : [];
  });
  return warnings.toSorted((one, other) => (other.lastAt?.getTime() ?? 0) - (one.lastAt?.getTime() ?? 0));
}

function warningOf(event: v.InferOutput<typeof EventSchema>): Warning {
  const { involvedObject: about, series, source, metadata } = event;
  return {
    by: source?.component || event.reportingComponent || "an unnamed source",
    about: `${about.kind ?? ""}/${about.name ?? ""}`,
    uid: about.uid ?? undefined,
    reason: event.reason ?? "",
    message: event.message ?? "",
    count: series?.count ?? event.count ?? 1,
    firstAt: time(event.firstTimestamp, event.eventTime, metadata.creationTimestamp),
    lastAt: time(series?.lastObservedTime, event.lastTimestamp, event.eventTime, metadata.creationTimestamp),
  };
}

/** The first of them that is a time. */
export function time(...texts: readonly (string | null | undefined)[]): Date | undefined {
  const given = texts.find(Boolean);
  const at = given ? new Date(given) : undefined;
  return at === undefined || Number.isNaN(at.getTime()) ? undefined : at;
}

function problemsOf(answer: unknown): readonly string[] {
  return answer instanceof KubeError ? [answer.message] : [];
}
