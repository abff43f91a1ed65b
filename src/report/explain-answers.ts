import type { FailureClass } from "../classes/failure-class.ts";
import { classById } from "../classes/index.ts";
import type { Failure } from "../diagnose/explain/answer.ts";
import type { ClassGroup, FailureGroup, Group, TopicGroup } from "../diagnose/explain/group.ts";
import { printable } from "../host/text.ts";
import { searchWords } from "../logs/answer.ts";
import type { Operation } from "../logs/operation.ts";
import { renderClassParts, type Style } from "./explain.ts";
import { onlyTarget, who, withNames } from "./explain-names.ts";
import { paint, visibleLength, wrap } from "./words.ts";

/** What pasted log lines mean: first what it is, who is concerned, what to do and how sure that is. */
export function renderAnswers(groups: readonly Group[], style: Style & { readonly verbose: boolean }): string {
  return groups.map((group) => `${partsOf(group, style).join("\n")}\n`).join("\n");
}

function partsOf(group: Group, style: Style & { readonly verbose: boolean }): readonly string[] {
  if (group.kind === "topic") return topicParts(group, style);
  if (group.kind === "failure") return failureParts(group, style);
  const known = classById(group.class);
  return known === undefined ? [] : classParts(group, known, style);
}

/** A guess is called one first of all. */
function headline({ title, code, id }: FailureClass, group: ClassGroup, style: Style): string {
  const painted = paint(style.colour);
  const guess = group.confidence >= SURE ? "" : `${likelihood(group)}: `;
  const what = `${guess}${painted.bold(title)}${times(group)}`;
  const name = `(${code} ${id})`;
  const fits = visibleLength(what) + 1 + name.length <= style.width;
  return fits ? `${what} ${painted.dim(name)}` : `${wrap(what, style.width, "  ")}\n  ${painted.dim(name)}`;
}

function classParts(group: ClassGroup, known: FailureClass, style: Style & { readonly verbose: boolean }) {
  const { code, explanation, danger } = known;
  const brief = [
    headline(known, group, style),
    ...labelled("What", explanation, style),
    ...labelled("Who", who(group), style),
    ...labelled("Do this", remedy(known, group), style),
    ...labelled("Careful", danger, style),
    ...labelled("How sure", sureness(group), style),
    ...labelled("Cut off", cutNote(group), style),
  ];
  if (!style.verbose)
    return [...brief, ...labelled("More", `unghost explain -v with the same text, or unghost explain ${code}`, style)];
  return [...brief, ...renderClassParts(known, group, style)];
}

/** Aligned labels would waste a third of a narrow terminal. */
function labelled(label: string, text: string | undefined, style: Style): readonly string[] {
  if (text === undefined || text === "") return [];
  return [wrap(`${paint(style.colour).bold(`${label}:`)} ${text}`, style.width, "  ")];
}

function times({ count }: Group): string {
  return count === 1 ? "" : ` (${count} times)`;
}

function remedy({ treatment: { mode }, byHand, category }: FailureClass, group: ClassGroup): string {
  if (category === "not-a-failure") return byHand[0] ?? "Nothing.";
  const [first, second] = byHand.map((line) => withNames(line, group));
  const steps = [first, second].filter((step) => step !== undefined).map(sentence);
  if (mode !== "automatic") return steps.join(" ");
  const target = onlyTarget(group);
  return `on its node: unghost heal --dry-run${target} shows what would be done, unghost heal${target} does it. By hand: ${steps.join(" ")}`;
}

function sentence(text: string): string {
  return /[.!?)]$/.test(text) ? text : `${text}.`;
}

const SURE = 0.9;
const PROBABLE = 0.6;

function likelihood({ confidence }: ClassGroup): string {
  const word = confidence >= SURE ? "Sure" : confidence >= PROBABLE ? "Probably" : "Possibly";
  return `${word} (${Math.round(confidence * 100)} %)`;
}

function sureness(group: ClassGroup): string {
  const { decides, alternatives } = group;
  const others = alternatives
    .map((id) => classById(id))
    .filter((one) => one !== undefined)
    .map(({ code, id }) => `${code} ${id}`);
  const or = others.length === 0 ? "" : ` Otherwise: ${others.join(", ")}.`;
  return `${likelihood(group)} from this text alone.${decides === undefined ? "" : ` What decides: ${sentence(decides)}`}${or}`;
}

const HOW_TO_GET_ALL =
  "The text is cut off. The whole line: journalctl --no-pager -l -u kubelet -u containerd (on k3s -u k3s), or kubectl get events -o json.";

function cutNote({ isCut }: Group): string | undefined {
  return isCut ? HOW_TO_GET_ALL : undefined;
}

interface OperationWords {
  /** "… fails" */
  readonly what: string;
  readonly blocks: string;
}

const OPERATIONS: Readonly<Record<Operation, OperationWords>> = {
  "create-sandbox": {
    what: "Creation of this sandbox",
    blocks: "The pod cannot start; kubelet tries again and again.",
  },
  "stop-sandbox": {
    what: "Removal of this sandbox",
    blocks:
      "While it fails the pod stays Terminating, or is not started again on this node, and the sandbox keeps its name and addresses.",
  },
  "remove-sandbox": {
    what: "Removal of this sandbox",
    blocks: "The dead sandbox stays listed and keeps its name and its files.",
  },
  "cni-add": { what: "Setting up a pod's network", blocks: "The pod cannot start; kubelet tries again and again." },
  "cni-del": {
    what: "Tearing down a pod's network",
    blocks: "While it fails the sandbox cannot be removed, or its addresses stay allocated.",
  },
  "cni-check": { what: "Checking a pod's network", blocks: "The pod's network may not be as it was set up." },
  "cni-status": { what: "The network plugin's readiness check", blocks: "No pod starts while it fails." },
  "create-container": { what: "Creation of a container", blocks: "The pod does not become ready." },
  "start-container": { what: "The start of a container", blocks: "The pod does not become ready." },
  "stop-container": { what: "Stopping a container", blocks: "The pod stays Terminating while it runs." },
  "remove-container": { what: "Removal of a dead container", blocks: "It stays listed, with its files." },
  attach: { what: "Attaching a volume", blocks: "The pod that needs it stays in ContainerCreating." },
  detach: { what: "Detaching a volume", blocks: "No other node can use the volume before that." },
  mount: { what: "Mounting a volume", blocks: "The pod that needs it stays in ContainerCreating." },
  unmount: {
    what: "Unmounting a volume",
    blocks: "The pod may stay Terminating, and the volume cannot move to another node.",
  },
  volume: {
    what: "An operation on a volume",
    blocks: "A pod that needs it stays in ContainerCreating, or one that had it stays Terminating.",
  },
  recover: {
    what: "Reading back the runtime's state at its start",
    blocks: "The runtime does not start, or has forgotten what it could not read.",
  },
  list: {
    what: "Listing sandboxes or containers",
    blocks: "kubelet cannot see its pods, and the node turns NotReady.",
  },
  "runtime-status": { what: "The runtime's status check", blocks: "The node is NotReady, and no pod starts." },
};

function failureParts(group: FailureGroup, style: Style): readonly string[] {
  const { failure } = group;
  const cut = group.isCut && failure.cause === undefined;
  return [
    wrap(`${paint(style.colour).bold(failureInWords(failure))}${times(group)}`, style.width),
    cut ? wrap(HOW_TO_GET_ALL, style.width) : "unghost does not know this cause.",
    ...labelled("Who", [who(group), volumeOf(failure)].filter((one) => one !== undefined).join("; "), style),
    ...labelled("Blocks", OPERATIONS[failure.operation].blocks, style),
    ...labelled("Check", whatToCheck(failure), style),
    ...labelled("Search for", searchFor(failure), style),
    ...(cut ? [] : labelled("Cut off", cutNote(group), style)),
  ];
}

function volumeOf({ volume }: Failure): string | undefined {
  return volume === undefined ? undefined : `volume ${printable(volume)}`;
}

function failureInWords({ operation, plugin, network, driver, cause, isCut }: Failure): string {
  const { what } = OPERATIONS[operation];
  const answering = answererOf(operation, plugin, network, driver);
  if (cause !== undefined) return `${what} fails; ${answering} answers: «${printable(cause)}».`;
  return `${what} fails; ${isCut ? "the text is cut off before the cause" : "this text does not contain the cause"}.`;
}

const VOLUME_OPERATIONS: ReadonlySet<Operation> = new Set(["attach", "detach", "mount", "unmount", "volume"]);

function answererOf(operation: Operation, plugin?: string, network?: string, driver?: string): string {
  if (VOLUME_OPERATIONS.has(operation)) return driver === undefined ? "the volume's driver" : `the driver ${driver}`;
  if (plugin === undefined) return operation.startsWith("cni") ? "the network plugin" : "the runtime";
  const of = network === undefined || network === plugin ? "" : ` (network ${network})`;
  return `the network plugin ${plugin}${of}`;
}

function whatToCheck({ operation, plugin, driver }: Failure): string {
  if (VOLUME_OPERATIONS.has(operation)) {
    return `the log of ${driver ?? "the volume's driver"}: its node pod on this node and its controller; kubectl get volumeattachment; kubectl describe pod.`;
  }
  if (plugin !== undefined) {
    return `${plugin}'s own daemon on this node (kubectl get pods -A -o wide, its log), its configuration in /etc/cni/net.d, and the runtime's log at the same second.`;
  }
  return "the runtime's log at the same second (journalctl --no-pager -l -u containerd or -u crio), and the kernel's (journalctl -k).";
}

function searchFor({ plugin, driver, cause }: Failure): string | undefined {
  const words = cause === undefined ? "" : searchWords(cause);
  return words === "" ? undefined : [plugin ?? driver, `"${words}"`].filter((one) => one !== undefined).join(" ");
}

function topicParts(group: TopicGroup, style: Style): readonly string[] {
  const { topic, failure } = group;
  const isElsewhere = topic.isOrdinary !== true && topic.isSymptom !== true;
  return [
    wrap(
      `${paint(style.colour).bold(topic.what)}${times(group)} ${isElsewhere ? "This is no ghost. " : ""}${topic.goTo}`,
      style.width,
      "  ",
    ),
    ...(failure === undefined ? [] : labelled("Here", failureInWords(failure), style)),
    ...labelled("Who", failure === undefined ? undefined : who(group), style),
    ...labelled("Cut off", cutNote(group), style),
  ];
}
