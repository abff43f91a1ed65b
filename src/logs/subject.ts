import type { NamedPod } from "../node/types/ids.ts";

/** What a line is about, as far as it contains that. */
export interface Subject {
  readonly sandboxId?: string;
  readonly pod?: NamedPod;
}

const ANY = "[a-z0-9](?:[a-z0-9.-]{0,252})";
const ID = "[0-9a-f]{12,64}(?![0-9a-z_-])";

/** In this order: the holder of a lock or the object of a call comes before other ids in the line. */
const SANDBOX_IDS: readonly RegExp[] = [
  new RegExp(`sandbox name \\S{1,400}:? (?:name \\S{1,400} )?is reserved for (${ID})`),
  new RegExp(`\\(([0-9a-f]{64})\\)`),
  new RegExp(`in use by (?:sandbox|container) (${ID})`),
  new RegExp(`(?:for|within|of|in|pod|stop|stopping|failed) sandbox (?:container |id |task )?(${ID})`),
  new RegExp(`(?:stop|remove)podsandbox (?:for )?(${ID})`),
  new RegExp(`podsandboxid[=:]{1,2}\\s?(?:\\{type:\\S{1,20},id:)?(${ID})`),
  new RegExp(`sandboxid[=: (]{1,3}(${ID})`),
  new RegExp(`sandbox (?:container )?(${ID})`),
  new RegExp(`k8s_pod_infra_container_id=(${ID})`),
  new RegExp(`containerid[=:(]{1,2}(${ID})`),
  new RegExp(`for id (${ID})`),
  new RegExp(`_${ANY}/(${ID}) from network`),
  new RegExp(`-([0-9a-f]{64})-\\w{1,15}\\b`),
  new RegExp(`/(?:multus|flannel|results)/\\S{0,120}?([0-9a-f]{64})`),
];

/** A label: no dots, unlike an address. */
const NAMESPACE = "(?<namespace>[a-z0-9](?:[a-z0-9-]{0,62}))";
const NAME = `(?<name>${ANY})`;
const UID = "(?<uid>[0-9a-z-]{8,40})";
const ATTEMPT = "(?<attempt>\\d{1,9})";

const PODS: readonly RegExp[] = [
  new RegExp(`podsandboxmetadata\\{name:${NAME},uid:${UID},namespace:${NAMESPACE},attempt:${ATTEMPT},`),
  new RegExp(`k8s_pod_${NAME}_${NAMESPACE}_${UID}_${ATTEMPT}`),
  new RegExp(`sandbox name /?${NAME}_${NAMESPACE}_${UID}_${ATTEMPT}(?![0-9a-z_])`),
  new RegExp(`container name /?(?:k8s_)?${ANY}_${NAME}_${NAMESPACE}_${UID}_\\d{1,9}(?![0-9a-z_])`),
  new RegExp(`(?:sandbox|pod name) k8s_${NAME}_${NAMESPACE}_${UID}_${ATTEMPT}`),
  new RegExp(`k8s_${ANY}_${NAME}_${NAMESPACE}_${UID}_\\d{1,9}`),
  new RegExp(`\\bname ${NAME}_${NAMESPACE}_${UID}_${ATTEMPT} is reserved`),
  new RegExp(`k8s_pod_namespace[=\\s]${NAMESPACE}[;\\]\\s]{1,3}\\[?k8s_pod_name[=\\s]${NAME}`),
  new RegExp(`\\b${NAME}_${NAMESPACE}\\(${UID}\\)`),
  new RegExp(`\\bpod=${NAMESPACE}/${NAME}`),
  new RegExp(`\\[${NAMESPACE}/${NAME}(?:/${UID})?[:\\]\\s]`),
  new RegExp(`error (?:deleting|adding) ${NAMESPACE}_${NAME}/`),
  new RegExp(`(?:teardown|set up|setup|for) pod ${NAME}_${NAMESPACE}(?![0-9a-z_.-])`),
];

/**
 * The sandbox and the pod in a line that normalise() returned, if any. Ids may be short (crictl prints 13 digits).
 */
export function subjectOf(text: string): Subject {
  return { sandboxId: firstMatch(SANDBOX_IDS, text)?.[1], pod: podIn(firstMatch(PODS, text)?.groups) };
}

function firstMatch(patterns: readonly RegExp[], text: string): RegExpExecArray | undefined {
  for (const pattern of patterns) {
    const match = pattern.exec(text);
    if (match !== null) return match;
  }
  return undefined;
}

function podIn(groups: Readonly<Record<string, string | undefined>> = {}): NamedPod | undefined {
  const { namespace, name, uid, attempt } = groups;
  if (namespace === undefined || name === undefined) return undefined;
  return { namespace, name, uid, attempt: attempt === undefined ? undefined : Number(attempt) };
}

/** A failing call's plugin, network and volume, as far as a line that normalise() returned contains them. */
export interface Callee {
  readonly plugin?: string;
  readonly network?: string;
  readonly volume?: string;
  readonly driver?: string;
}

const PLUGIN_TYPE = /plugin type=([a-z0-9][\w.-]{0,60})/g;
/** Plugins that write their own log, or that an older kubelet calls without naming their type. */
const PLUGIN_FAMILY =
  /\b(kube-ovn|multus|calico|cilium|flannel|weave|antrea|aws-cni|azure-vnet|ovn-k8s-cni-overlay|whereabouts|spiderpool|linkerd-cni|istio-cni|sriov|kube-router|terway|canal)\b/;
const NETWORK = /(?:(?:to|from) (?:cni )?network |(?:conflist|delegate)(?:add|del) - )([^\s:"]{1,120})/g;
const VOLUME = /for volume ([^\s:"]{1,253})/;
const DRIVER = /kubernetes\.io\/csi\/([a-z0-9][a-z0-9.-]{1,120})\^|driver name ([a-z0-9][a-z0-9.-]{1,120}) not found/;

export function calleeOf(text: string): Callee {
  const driver = DRIVER.exec(text);
  return {
    plugin: lastOf(PLUGIN_TYPE, text) ?? PLUGIN_FAMILY.exec(text)?.[1],
    network: lastOf(NETWORK, text),
    volume: VOLUME.exec(text)?.[1],
    driver: driver?.[1] ?? driver?.[2],
  };
}

function lastOf(pattern: RegExp, text: string): string | undefined {
  return [...text.matchAll(pattern)].at(-1)?.[1];
}
