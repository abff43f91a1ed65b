import type { Cause, CauseCode } from "./cause.ts";
import { type ContainerStatus, type Pod, time, type Warning, type WhyFacts } from "./facts.ts";
import { meaningOf } from "./message.ts";

/** The reasons of a container that waits, and what each is about. */
const WAITING: Readonly<Record<string, { readonly code: CauseCode; readonly what: string; readonly next: string }>> = {
  ErrImagePull: image("its image cannot be pulled"),
  ImagePullBackOff: image("its image cannot be pulled"),
  ErrImageNeverPull: image("its image is not on the node, and may not be pulled"),
  InvalidImageName: image("the name of its image is invalid"),
  RegistryUnavailable: image("the registry of its image is not available"),
  CrashLoopBackOff: {
    code: "crash",
    what: "its program ends again and again",
    next: "kubelet starts it again, at most every five minutes",
  },
  RunContainerError: { code: "config", what: "its container does not start", next: "kubelet tries again" },
  CreateContainerConfigError: {
    code: "config",
    what: "an object that it needs does not exist",
    next: "kubelet tries again until it exists",
  },
  CreateContainerError: { code: "config", what: "its container cannot be created", next: "kubelet tries again" },
};

function image(what: string) {
  return { code: "image", what, next: "kubelet pulls it again, at most every five minutes" } as const;
}

/** What prevents a container of a pod whose sandbox exists. It is never a ghost, and gets one line. */
export function containerCause(facts: WhyFacts, { status }: Pod): Cause | undefined {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const container of all) {
    const cause = waitingCause(container, facts);
    if (cause !== undefined) return cause;
  }
  return notReadyCause(facts, status?.containerStatuses ?? []);
}

function waitingCause(container: ContainerStatus, { namespace, name, warnings }: WhyFacts): Cause | undefined {
  const { waiting } = container.state ?? {};
  const known = WAITING[waiting?.reason ?? ""];
  if (known === undefined || !waiting) return undefined;
  const warning = warnings.find(({ reason }) => reason === "Failed" || reason === "BackOff");
  const meaning = meaningOf(`${waiting.reason ?? ""} ${waiting.message ?? ""}`);
  const message = detailOf(container, warnings);
  return {
    code: known.code,
    what: `Container ${container.name}: ${known.what}${message === "" ? "." : `: ${message}`}`,
    isOurs: false,
    evidence: [
      {
        source: "kubelet",
        fact: `container ${container.name} waits: ${waiting.reason ?? ""}: ${waiting.message ?? ""}`,
      },
      ...(warning === undefined ? [] : [{ source: warning.by, fact: `${warning.reason}: ${warning.message}` }]),
    ],
    since: warning?.firstAt ?? time(container.lastState?.terminated?.finishedAt),
    blocks: [],
    next: known.next,
    remedy:
      known.code === "crash"
        ? `kubectl logs --previous --namespace=${namespace} ${name} -c ${container.name}`
        : meaning.kind === "topic"
          ? meaning.goTo
          : undefined,
  };
}

/** The exit code, or the first line of kubelet's message; a back-off repeats only the delay. */
function detailOf({ state, lastState }: ContainerStatus, warnings: readonly Warning[]): string {
  const { terminated } = lastState ?? {};
  if (terminated)
    return `it last ended with ${terminated.reason ?? ""} (exit code ${terminated.exitCode ?? "unknown"})`;
  const pull = warnings.find(({ reason, message }) => reason === "Failed" && message.startsWith("Failed to pull"));
  const [line = ""] = (pull?.message ?? state?.waiting?.message ?? "").split("\n");
  return line.slice(0, 300);
}

/** It runs, and its readiness or startup probe fails. */
function notReadyCause({ warnings }: WhyFacts, containers: readonly ContainerStatus[]): Cause | undefined {
  const running = containers.find(({ state, ready }) => state?.running && ready === false);
  if (running === undefined) return undefined;
  const probe = warnings.find(({ reason }) => reason === "Unhealthy");
  if (probe === undefined) return undefined;
  return {
    code: "probe",
    what: `Container ${running.name} runs and is not ready: ${probe.message.split("\n")[0] ?? ""}`,
    isOurs: false,
    evidence: [{ source: probe.by, fact: `${probe.reason}: ${probe.message}` }],
    since: time(running.state?.running?.startedAt),
    blocks: [],
    next: "it becomes ready once its probe succeeds",
    remedy: "check the program's log, and the probe's timeout and delay",
  };
}
