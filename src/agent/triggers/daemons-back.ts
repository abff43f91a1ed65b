import { resolveOnHost } from "../../host/paths.ts";
import { valueOr } from "../../host/source.ts";
import { stateOfSocket } from "../../node/csi.ts";
import type { Snapshot } from "../../node/types/snapshot.ts";
import { openCri } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";

export interface DaemonsBackOptions {
  readonly hostRoot: string;
  /** What network calls wait for works again: the socket of a daemon, the runtime's network, the pod of an add-on. */
  readonly onBack: (what: string) => void;
  /** Default: once a second. A connection or a Status call is cheap. */
  readonly everyMs?: number;
}

type Seen = Pick<Snapshot, "cniDaemons" | "multusDaemon" | "cri" | "runtime" | "kubernetes">;

/** What was down in the last scan. Empty on a healthy node, where nothing is polled. */
interface Down {
  readonly sockets: ReadonlySet<string>;
  /** The runtime's endpoint, if its network is not ready: with CNI 1.1 that is the plugin's answer to STATUS. */
  readonly runtime?: string;
  /** Names of pods of network add-ons that are not Ready. */
  readonly pods: ReadonlySet<string>;
}

const NOTHING: Down = { sockets: new Set(), pods: new Set() };
const EVERY_MS = 1000;
const PROBE_MS = 1000;

/** Notices that what was down is back, sooner than kubelet's next attempt and the next scan. */
export function watchDaemonsBack({ hostRoot, onBack, everyMs = EVERY_MS }: DaemonsBackOptions) {
  let down = NOTHING;
  let isChecking = false;

  async function check(): Promise<void> {
    const { sockets, runtime } = down;
    const call = () => AbortSignal.timeout(PROBE_MS);
    const probed = await Promise.all([
      ...[...sockets].map(async (socket) => {
        const state = await stateOfSocket(resolveOnHost(hostRoot, socket, "follow"), call());
        return state === "listening" ? socket : undefined;
      }),
      runtime === undefined ? undefined : networkIsReady(runtime).then((isReady) => (isReady ? NETWORK : undefined)),
    ]);
    const back = probed.filter((one) => one !== undefined);
    if (back.length === 0) return;
    down = {
      ...down,
      sockets: new Set([...down.sockets].filter((socket) => !back.includes(socket))),
      runtime: back.includes(NETWORK) ? undefined : down.runtime,
    };
    for (const one of back) onBack(one);
  }

  const timer = setInterval(() => {
    if (isChecking || (down.sockets.size === 0 && down.runtime === undefined)) return;
    isChecking = true;
    void check().finally(() => {
      isChecking = false;
    });
  }, everyMs);
  timer.unref();
  return {
    /** Called with the snapshot of each scan. */
    saw: (snapshot: Seen): void => {
      const ready = readyPodsOf(snapshot);
      const backPods = [...down.pods].filter((pod) => ready.has(pod));
      down = downIn(snapshot, down);
      for (const pod of backPods) onBack(`pod ${pod}`);
    },
    close: (): void => clearInterval(timer),
  };
}

const NETWORK = "the runtime's network";

function downIn({ cniDaemons, multusDaemon, cri, runtime, kubernetes }: Seen, before: Down): Down {
  const daemons = cniDaemons?.status === "read" ? cniDaemons.value : [];
  const all = multusDaemon === undefined ? daemons : [...daemons, multusDaemon];
  const isDown = ({ state }: (typeof all)[number]): boolean => state === "dead" || state === "missing";
  // Daemons are read only while something fails: one that is not read now may still be down.
  const known = new Set(all.map(({ socket }) => socket));
  const still = [...before.sockets].filter((socket) => !known.has(socket));
  const network = valueOr(cri, undefined)?.conditions.find(({ type }) => type === "NetworkReady");
  const pods = kubernetes.source === "api" ? kubernetes.pods : [];
  return {
    sockets: new Set([...still, ...all.filter(isDown).map(({ socket }) => socket)]),
    runtime: network?.status === false ? runtime.endpoint : undefined,
    pods: new Set(pods.flatMap((pod) => (pod.networkAddOn === "not-ready" ? [nameOf(pod)] : []))),
  };
}

function readyPodsOf({ kubernetes }: Seen): ReadonlySet<string> {
  if (kubernetes.source !== "api") return new Set();
  return new Set(kubernetes.pods.flatMap((pod) => (pod.networkAddOn === "ready" ? [nameOf(pod)] : [])));
}

function nameOf({ namespace, name }: { readonly namespace: string | undefined; readonly name: string | undefined }) {
  return `${namespace}/${name}`;
}

async function networkIsReady(endpoint: string): Promise<boolean> {
  const cri = openCri(endpoint.replace(/^unix:\/\//, ""));
  try {
    const { status } = await cri.status({ timeoutMs: PROBE_MS });
    return status?.conditions.some((condition) => condition.type === "NetworkReady" && condition.status) === true;
  } catch (error) {
    if (error instanceof RuntimeError) return false;
    throw error;
  } finally {
    cri.close();
  }
}
