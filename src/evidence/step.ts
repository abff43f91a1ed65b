import * as v from "valibot";
import type { ContainerId, SandboxId } from "../node/types/ids.ts";
import {
  absolutePath,
  count,
  fileState,
  journalAction,
  onPath,
  onSandbox,
  sha256,
  type Words,
} from "./journal-action.ts";

/**
 * The changes that unghost can make to a node, and what each contains: what it was proven with, so that the proof can be
 * repeated just before the change. Classes and plan create steps; only heal/steps/ carries them out.
 */
interface StepData {
  "quarantine-file": { readonly path: string; readonly health: "empty" | "corrupt" | "stripped" | "orphaned" };
  "await-kubelet": { readonly sandboxId: SandboxId };
  "stop-sandbox": { readonly sandboxId: SandboxId };
  "remove-sandbox": { readonly sandboxId: SandboxId };
  /** Of a container whose sandbox the runtime does not have: removing the sandbox would not remove it. */
  "remove-container": { readonly containerId: ContainerId; readonly sandboxId: SandboxId };
  "multus-marker": { readonly sandboxId: SandboxId; readonly dir: string };
  "end-process": HungProcess;
  /**
   * Ends all plugin calls that hold the runtime's CNI lock, then waits until Status is answered and the node is Ready.
   */
  "free-cni-lock": {
    /** The node's name in the cluster; missing without an API server. */
    readonly node?: string;
    readonly holders: readonly HungProcess[];
  };
  /** Stops the container of a network daemon that does not answer on its socket; kubelet starts it again. */
  "restart-daemon": HungProcess & { readonly socket: string; readonly containerId: ContainerId };
  "release-addresses": { readonly sandboxId: SandboxId; readonly leases: readonly LeaseRef[] };
  /** DEL with the configuration that libcni cached at this path, for a sandbox that is gone. */
  "replay-del": { readonly sandboxId: SandboxId; readonly path: string };
  "drop-empty-lease": { readonly path: string; readonly networkDir: string };
  "remove-netns": { readonly path: string; readonly inode: bigint | undefined };
  "delete-lease": { readonly leaseId: string };
  "await-socket": {
    readonly path: string;
    /** After the timeout the next step runs anyway. */
    readonly optional?: true;
  };
  "kick-pod": {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    /** The node's name in the cluster. */
    readonly node: string;
    /** The sandbox being created that holds the pod's name; missing if the pod crash-looped. */
    readonly holder?: SandboxId;
    /**
     * The pod was down for another reason when it was planned: whether it crashes without the socket is checked
     * later.
     */
    readonly mayCrash?: true;
    /** It has not started, because its own volumes could not be mounted: a new pod waits for no back-off of kubelet. */
    readonly waitsForVolumes?: true;
  };
  /** Removes a record of a runtime that does not start because of it. */
  "delete-record": { readonly record: string; readonly store: "containers" | "sandboxes" };
}

export interface HungProcess {
  readonly pid: number;
  readonly startedSecondsAfterBoot: number;
  readonly sandboxId: SandboxId;
}

/** Without what only diagnosis knows of the process. */
export function hungProcess({ pid, startedSecondsAfterBoot, sandboxId }: HungProcess): HungProcess {
  return { pid, startedSecondsAfterBoot, sandboxId };
}

/** One host-local address, by the file that holds it. */
export interface LeaseRef {
  readonly network: string;
  readonly path: string;
  readonly address: string;
  readonly interfaceName: string;
}

export type StepKind = keyof StepData;
export type StepOf<Kind extends StepKind = StepKind> = { [K in Kind]: { readonly kind: K } & StepData[K] }[Kind];
export type Step = StepOf;

/** How a step affects anything other than its dead sandbox: fleet limits ask. */
export type Disruption = "always" | "in-bulk" | "never";

interface StepDefinition<Kind extends StepKind> {
  /** What it changes: the module of heal/steps/ that carries it out, and declares what it needs. */
  readonly area: "sandboxes" | "files" | "processes" | "pods" | "networks";
  readonly words: {
    readonly planned: (step: StepOf<Kind>) => string;
    /** Undefined for steps that only wait. */
    readonly done?: (step: StepOf<Kind>) => string;
    /** For a table cell. */
    readonly short?: readonly [planned: string, done: string];
    /** What exactly it changes, where that is not the sandbox itself: a path, a process, an address. */
    readonly target?: (step: StepOf<Kind>) => string;
  };
  /** `unghost undo` puts it back; it affects neither the runtime nor a plugin. */
  readonly reversible?: true;
  readonly disruption: Disruption;
  /** If all of these are absent there is nothing to do. */
  readonly paths?: (step: StepOf<Kind>) => readonly string[];
  /** The number of addresses that it frees. */
  readonly addresses?: (step: StepOf<Kind>) => number;
  /** What the journal records of it. */
  readonly journal: { readonly kind: string } | readonly { readonly kind: string }[];
}

const QUARANTINED = ["quarantine", "quarantined"] as const;

/** All facts and words about a step. A new kind is an entry here and a function in the module of its area. */
const DEFINITIONS = {
  "quarantine-file": {
    area: "files",
    words: {
      planned: ({ health }) =>
        health === "orphaned" ? "move what is left of its cache to quarantine" : "move the broken file to quarantine",
      done: () => "moved its broken or stale cache file to quarantine",
      short: QUARANTINED,
      target: ({ path }) => path,
    },
    reversible: true,
    disruption: "never",
    paths: ({ path }) => [path],
    journal: journalAction(
      "quarantine-file",
      { path: absolutePath, before: fileState },
      { on: onPath, did: () => "moved its broken or stale file to quarantine" },
    ),
  },
  "await-kubelet": {
    area: "sandboxes",
    words: { planned: () => "let kubelet finish" },
    disruption: "never",
    journal: [],
  },
  // Stop, remove and release call network plugins, many of which use the API server and their IPAM; and each lets
  // kubelet start a pod again. A few are normal for a node, dozens on every node at once are a storm.
  "stop-sandbox": {
    area: "sandboxes",
    words: {
      planned: () => "stop the sandbox through the runtime",
      done: () => "stopped the sandbox",
      short: ["stop", "stopped"],
    },
    disruption: "in-bulk",
    journal: journalAction(
      "stop-sandbox",
      { sandboxId: v.string() },
      { on: onSandbox, did: () => "stopped the sandbox" },
    ),
  },
  "remove-sandbox": {
    area: "sandboxes",
    words: {
      planned: () => "save its logs and remove it through the runtime",
      done: () => "removed the sandbox",
      short: ["remove", "removed"],
    },
    disruption: "in-bulk",
    journal: [
      journalAction("remove-sandbox", { sandboxId: v.string() }, { on: onSandbox, did: () => "removed the sandbox" }),
      journalAction(
        "save-logs",
        { sandboxId: v.string(), paths: v.array(absolutePath) },
        { on: onSandbox, did: () => "saved its logs" },
      ),
    ],
  },
  "remove-container": {
    area: "sandboxes",
    words: {
      planned: () => "save its log and remove the container through the runtime",
      done: () => "removed the container",
      short: ["remove container", "container removed"],
    },
    disruption: "never",
    journal: journalAction(
      "remove-container",
      { containerId: v.string() },
      { on: ({ containerId }) => `container ${containerId.slice(0, 13)}`, did: () => "removed the container" },
    ),
  },
  "multus-marker": {
    area: "files",
    words: {
      planned: () => "make multus' DEL safe for it",
      done: () => "made multus' DEL safe for it",
      short: ["make DEL safe", "DEL made safe"],
      target: ({ dir, sandboxId }) => `${dir}/${sandboxId}`,
    },
    disruption: "never",
    journal: journalAction(
      "write-marker",
      { path: absolutePath, sha256 },
      { on: onPath, did: () => "made multus' DEL safe for it" },
    ),
  },
  // A running process is ended, and its callers fail.
  "end-process": {
    area: "processes",
    words: {
      planned: () => "end the hung process",
      done: () => "ended the hung process",
      short: ["end process", "process ended"],
      target: ({ pid }) => `pid ${pid}`,
    },
    disruption: "always",
    journal: journalAction(
      "end-process",
      { pid: count, startedSecondsAfterBoot: v.number() },
      { on: ({ pid }) => `pid ${pid}`, did: ({ pid }) => `ended process ${pid}` },
    ),
  },
  "free-cni-lock": {
    area: "processes",
    words: {
      planned: ({ node }) =>
        `end the plugin processes that hold the CNI lock and see that the runtime answers Status${node === undefined ? "" : " and the node turns Ready"}`,
      done: () => "ended the process that held the CNI lock",
      short: ["free CNI lock", "CNI lock freed"],
      target: ({ holders }) => holders.map(({ pid }) => `pid ${pid}`).join(", "),
    },
    disruption: "always",
    journal: [],
  },
  // A pod is restarted, and with it what it serves.
  "restart-daemon": {
    area: "pods",
    words: {
      planned: ({ socket }) =>
        `stop the daemon's container, so that kubelet starts it again, and see that it answers on ${socket}`,
      done: () => "restarted the daemon's container",
      short: ["restart daemon", "daemon restarted"],
      target: ({ containerId }) => `container ${containerId}`,
    },
    disruption: "always",
    journal: journalAction(
      "restart-daemon",
      { containerId: v.string(), socket: absolutePath, pid: count },
      {
        on: ({ containerId }) => `container ${containerId.slice(0, 13)}`,
        did: () => "restarted the daemon's container",
      },
    ),
  },
  "release-addresses": {
    area: "networks",
    words: {
      planned: () => "release the IP addresses it still holds",
      done: ({ leases }) => `released ${leases.length} ${leases.length === 1 ? "IP address" : "IP addresses"}`,
      short: ["release IPs", "IPs released"],
      target: ({ leases }) => leases.map(({ address, network }) => `${address} of ${network}`).join(", "),
    },
    disruption: "in-bulk",
    paths: ({ leases }) => leases.map(({ path }) => path),
    addresses: ({ leases }) => leases.length,
    journal: journalAction(
      "release-address",
      { network: v.string(), address: v.string(), owner: v.string() },
      { on: ({ address, network }) => `${address} of ${network}`, did: ({ address }) => `released ${address}` },
    ),
  },
  "replay-del": {
    area: "networks",
    words: {
      planned: () => "call DEL with the cached configuration",
      done: () => "called CNI DEL from its cached record",
      short: ["CNI DEL", "CNI DEL called"],
      target: ({ path }) => path,
    },
    disruption: "in-bulk",
    paths: ({ path }) => [path],
    journal: journalAction(
      "replay-del",
      { path: absolutePath, sandboxId: v.string() },
      { on: onPath, did: () => "called CNI DEL" },
    ),
  },
  "drop-empty-lease": {
    area: "files",
    words: {
      planned: () => "move the ownerless address file to quarantine",
      done: () => "moved the ownerless address file to quarantine",
      short: QUARANTINED,
      target: ({ path }) => path,
    },
    reversible: true,
    disruption: "never",
    addresses: () => 1,
    journal: [],
  },
  "remove-netns": {
    area: "networks",
    words: {
      planned: () => "remove the network namespace",
      done: () => "removed the network namespace",
      short: ["remove netns", "netns removed"],
      target: ({ path }) => path,
    },
    disruption: "never",
    journal: journalAction(
      "remove-netns",
      { path: absolutePath },
      { on: onPath, did: () => "removed the network namespace" },
    ),
  },
  "delete-lease": {
    area: "sandboxes",
    words: {
      planned: () => "delete the containerd lease",
      done: () => "deleted the containerd lease",
      short: ["delete lease", "lease deleted"],
      target: ({ leaseId }) => leaseId,
    },
    disruption: "never",
    journal: journalAction(
      "delete-lease",
      { lease: v.string() },
      { on: ({ lease }) => lease, did: () => "deleted the containerd lease" },
    ),
  },
  "await-socket": {
    area: "pods",
    words: { planned: ({ optional }) => (optional ? "wait for the socket of its CSI driver" : "wait for its socket") },
    disruption: "never",
    journal: [],
  },
  "kick-pod": {
    area: "pods",
    words: {
      planned: () => "delete the pod, so that its controller creates a new one with a free sandbox name",
      done: ({ namespace, name }) => `restarted ${namespace}/${name}`,
      short: ["restart pod", "pod restarted"],
    },
    disruption: "always",
    journal: journalAction(
      "kick-pod",
      { namespace: v.string(), name: v.string(), uid: v.string() },
      {
        on: ({ namespace, name }) => `${namespace}/${name}`,
        did: ({ namespace, name }) => `restarted ${namespace}/${name}`,
      },
    ),
  },
  // While the node has no runtime there is nothing to disrupt.
  "delete-record": {
    area: "sandboxes",
    words: {
      planned: () => "delete the record",
      done: () => "deleted the record",
      short: ["delete record", "record deleted"],
      target: ({ record }) => record,
    },
    disruption: "never",
    journal: journalAction(
      "delete-record",
      { record: v.string(), copy: absolutePath },
      { on: ({ record }) => `record ${record}`, did: () => "deleted the record" },
    ),
  },
} satisfies { readonly [Kind in StepKind]: StepDefinition<Kind> };

export const STEPS: { readonly [Kind in StepKind]: StepDefinition<Kind> } = DEFINITIONS;

type OneOf<T> = T extends readonly (infer One)[] ? One : T;
type Journaled = OneOf<(typeof DEFINITIONS)[StepKind]["journal"]>;

const JOURNALED = Object.values(DEFINITIONS).flatMap<Journaled>(({ journal }) => journal);

/** What the journal announces: a change, with the previous state if it is needed for undo. */
export const journalActionSchema = v.variant(
  "kind",
  JOURNALED.map(({ schema }) => schema),
);
export type JournalAction = v.InferOutput<typeof journalActionSchema>;

const WORDS: ReadonlyMap<string, Words<JournalAction>> = new Map(JOURNALED.map((one) => [one.kind, one]));

/** What a journaled change was done to, in a cell of the history. `pod`: the pod of its finding, as `namespace/name`. */
export function doneTo(action: JournalAction, pod: string | undefined): string {
  return WORDS.get(action.kind)?.on(action, pod) ?? action.kind;
}

/** What it did, on the status page. */
export function didInWords(action: JournalAction): string {
  return WORDS.get(action.kind)?.did(action) ?? action.kind;
}

export type StepArea = StepDefinition<StepKind>["area"];
/** The kinds that one module of heal/steps/ carries out. */
export type KindsOf<Area extends StepArea> = {
  [Kind in StepKind]: (typeof DEFINITIONS)[Kind]["area"] extends Area ? Kind : never;
}[StepKind];

/** The steps after a removal only clean up what the runtime left. */
export function untilRemoval(steps: readonly Step[]): readonly Step[] {
  const removal = steps.findIndex(({ kind }) => kind === "remove-sandbox");
  return removal < 0 ? steps : steps.slice(0, removal + 1);
}
