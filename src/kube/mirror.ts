import { setTimeout as sleep } from "node:timers/promises";
import type { Api } from "./api.ts";
import { attachmentReader } from "./attachments.ts";
import { type NodeAccess, openNode, orFailed, readAll, readFacts, type Standing } from "./cluster.ts";
import { type ApiPod, type ClusterAnswer, IGNORED_NAMESPACES, NODES, PODS, type PodEvent } from "./cluster-facts.ts";
import { KubeError, orKubeError } from "./errors.ts";
import { readEvents } from "./events.ts";
import { MAX_LOOKUPS, readCsiDrivers } from "./unattached-volumes.ts";
import { type ApiVolume, noAnswers } from "./volume-lookups.ts";
import { type WatchedList, watchList } from "./watched-list.ts";

/** The cluster's state of this node for the agent: listed once, then watched. */
export type ClusterMirror = ReturnType<typeof openClusterMirror>;

export interface MirrorOptions extends NodeAccess {
  readonly trust?: Trust;
}

/** How long watched data is trusted. */
export interface Trust {
  /** A broken watch usually reconnects within this time; its data stays valid meanwhile. */
  readonly brokenMs: number;
  /** A watch may die silently: data that was not confirmed for this long is requested again. */
  readonly silentMs: number;
  /** The same while a sandbox is dead, because then a missing pod counts as gone. */
  readonly silentWhileUnhealthyMs: number;
}

const TRUST: Trust = { brokenMs: 10_000, silentMs: 120_000, silentWhileUnhealthyMs: 5_000 };

/** A healthy server answers from its cache at once: healing must not wait for a hung or starting one. */
const ANSWER_MS = 1500;
/** After an unconfirmed request, the next scans do not repeat it for this long. */
const UNCONFIRMED_MS = 15_000;
/** Requests to the API server per scan; the first scan may send more. */
const REQUESTS_PER_SCAN = 3;
/** API servers do not cache events, so each list is expensive on an unhealthy cluster. Evidence may be this old. */
const EVENTS_MS = 30_000;
const MAX_VOLUMES = 1000;

export function openClusterMirror(options: MirrorOptions) {
  const { limits, trust = TRUST } = options;
  const listeners = new Set<() => void>();
  const onChange = (): void => {
    for (const listener of listeners) listener();
  };
  const watching = { open: () => openNode(options), openMs: limits.timeoutMs, onChange };
  const pods = watchList(PODS, watching);
  const nodes = watchList(NODES, watching);
  const volumes = new Map<string, ApiVolume>();
  let namespaces: WatchedList<string> | undefined;
  let events: { readonly items: readonly PodEvent[]; readonly until: number } = {
    items: [],
    until: Number.NEGATIVE_INFINITY,
  };
  let drivers: readonly string[] = [];
  let unconfirmed: { readonly error: KubeError; readonly until: number } | undefined;
  let scans = 0;
  const attachments = attachmentReader();
  const answers = noAnswers();

  async function current<Item>(list: WatchedList<Item>): Promise<readonly Item[]> {
    await Promise.race([list.started, sleep(ANSWER_MS, undefined, { ref: false })]);
    const items = list.items(trust.brokenMs);
    if (items instanceof KubeError) throw items;
    return items;
  }

  async function confirm(api: Api, name: string): Promise<readonly ApiPod[]> {
    if (unconfirmed !== undefined && performance.now() < unconfirmed.until) throw unconfirmed.error;
    const asked = orKubeError(readAll(api, PODS, name, pods.version()));
    const late = new KubeError("timeout", `the API server did not confirm within ${ANSWER_MS} ms which pods are here`);
    const answer = await Promise.race([asked, sleep(ANSWER_MS, late, { ref: false })]);
    if (!(answer instanceof KubeError)) return answer;
    unconfirmed = { error: answer, until: performance.now() + UNCONFIRMED_MS };
    throw answer;
  }

  function standing(name: string, hasDeadSandboxes: Promise<boolean>, { api, left }: Budgeted): Standing {
    return {
      pods: async () => {
        const known = await current(pods);
        const longest = (await hasDeadSandboxes) ? trust.silentWhileUnhealthyMs : trust.silentMs;
        if (pods.silentMs() < longest) return known;
        return await confirm(api, name);
      },
      node: async () => {
        const [found] = await current(nodes);
        if (found === undefined) throw new KubeError("not-found", `the cluster has no node "${name}"`);
        return found;
      },
      ignoredNamespaces: async () => (namespaces === undefined ? [] : await current(namespaces)),
      events: async (waiting) => {
        if (performance.now() > events.until) {
          events = { items: await readEvents(api, waiting), until: performance.now() + EVENTS_MS };
        }
        return events.items;
      },
      csiDrivers: async () => {
        // Drivers change only with their installation: the last result is good enough while the requests are needed
        // elsewhere.
        if (left() > 1) drivers = await readCsiDrivers(api, name);
        return drivers;
      },
    };
  }

  async function ask(hasDeadSandboxes: Promise<boolean>): Promise<ClusterAnswer> {
    const { api, name, isKubelet } = await openNode(options);
    scans += 1;
    const budgeted = withBudget(api, scans === 1 ? MAX_LOOKUPS : REQUESTS_PER_SCAN);
    // Kubelet credentials may not read namespaces.
    if (!isKubelet) namespaces ??= watchList(IGNORED_NAMESPACES, watching);
    if (volumes.size > MAX_VOLUMES) volumes.clear();
    try {
      const following = { most: budgeted.left, volumes, attachments, answers, readsClaims: false };
      const question = { name, isKubelet, hasDeadSandboxes, following };
      const facts = await readFacts(budgeted.api, standing(name, hasDeadSandboxes, budgeted), question);
      return { kind: "answered", facts };
    } finally {
      api.close();
    }
  }

  return {
    /** The same answer as askCluster, mostly without a request. */
    ask: ({ hasDeadSandboxes = Promise.resolve(true) }: { readonly hasDeadSandboxes?: Promise<boolean> }) =>
      orFailed(() => ask(hasDeadSandboxes)),
    /** Called when the cluster's state of this node has changed. Returns a function to unsubscribe. */
    onChange: (listener: () => void): (() => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => {
      for (const list of [pods, nodes, namespaces]) list?.close();
    },
  };
}

type Budgeted = ReturnType<typeof withBudget>;

/** Counts the requests of one scan. */
function withBudget(api: Api, most: number) {
  let asked = 0;
  const get: Api["get"] = (path, accept) => {
    asked += 1;
    return api.get(path, accept);
  };
  return { api: { ...api, get }, left: () => most - asked };
}
