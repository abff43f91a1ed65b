import { type HistoryRecord, readHistory } from "../../src/heal/journal/reader.ts";
import { DEFAULT_WAITS, type FreshFacts, uninterrupted } from "../../src/heal/proof/fresh-facts.ts";
import type { StepResult, StepTools } from "../../src/heal/steps/step-result.ts";
import { read, type Source } from "../../src/host/source.ts";
import type { ContainerdFacts, ProcessFacts, Task } from "../../src/node/types/runtime.ts";
import type { ContainerdClient } from "../../src/runtime/containerd.ts";
import type { CriClient } from "../../src/runtime/cri.ts";
import { Container, ContainerState, PodSandbox, PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import type { HealFixture } from "./heal-fixture.ts";

export type FakeProcesses = Source<ProcessFacts> | Partial<ProcessFacts>;

/** The content of a fake node. Everything else is readable and empty. */
export interface FakeNode {
  readonly sandboxes?: readonly PodSandbox[];
  readonly containers?: readonly Container[];
  readonly tasks?: readonly Task[] | Error;
  readonly processes?: FakeProcesses | (() => FakeProcesses);
  /** Undefined if the runtime is CRI-O. */
  readonly containerdFacts?: Partial<ContainerdFacts> | undefined;
  readonly cri?: Partial<CriClient>;
  readonly tools?: Partial<StepTools>;
}

/** Executes a step, and returns its journal entry. */
export async function journalOf(
  fixture: HealFixture,
  step: Promise<StepResult>,
): Promise<{ readonly result: StepResult; readonly history: readonly HistoryRecord[] }> {
  const result = await step;
  await fixture.journal.close();
  return { result, history: (await readHistory(fixture.stateDir.journal)).records };
}

/** The dependencies of a step on a fake node; unexpected calls fail the test. */
export function fakeTools(fixture: HealFixture, node: FakeNode = {}): StepTools {
  return {
    stateDir: fixture.stateDir,
    journal: fixture.journal,
    hostRoot: "/",
    cri: fakeCri({
      listPodSandbox: (filter) =>
        Promise.resolve(
          (node.sandboxes ?? []).filter(
            ({ id, state }) =>
              (!filter?.id || filter.id === id) && (filter?.state === undefined || filter.state.state === state),
          ),
        ),
      podSandboxState: (id) => Promise.resolve(node.sandboxes?.find((one) => one.id === id)?.state),
      ...node.cri,
    }),
    containerd: isContainerd(node) ? fakeContainerd() : undefined,
    facts: fakeFacts(node),
    removeVerified: () => unexpected("departed"),
    conf: undefined,
    binDirs: [],
    cniCacheDirs: [],
    logPaths: new Map(),
    waits: DEFAULT_WAITS,
    sleep: () => Promise.resolve(),
    interruption: uninterrupted(),
    turn: () => unexpected("turn"),
    ...node.tools,
  };
}

export function fakeFacts(node: FakeNode): FreshFacts {
  const processes = () => Promise.resolve(processesOf(node));
  return {
    processes,
    processesNow: processes,
    tasks: () => {
      if (!isContainerd(node)) return Promise.resolve(undefined);
      return node.tasks instanceof Error ? Promise.reject(node.tasks) : Promise.resolve(node.tasks ?? []);
    },
    containerd: () =>
      Promise.resolve(
        isContainerd(node) ? { records: [], sandboxes: [], leases: [], tasks: [], ...node.containerdFacts } : undefined,
      ),
    sandbox: (id) => Promise.resolve(node.sandboxes?.find((one) => one.id === id)),
    containersOf: (id) => Promise.resolve((node.containers ?? []).filter(({ podSandboxId }) => podSandboxId === id)),
    resultFiles: () => Promise.resolve([]),
    begin: () => undefined,
    renew: () => undefined,
  };
}

export function criSandbox(id: string, more: Parameters<typeof PodSandbox.fromPartial>[0] = {}): PodSandbox {
  return PodSandbox.fromPartial({ id, state: PodSandboxState.SANDBOX_NOTREADY, ...more });
}

export function criContainer(sandboxId: string, more: Parameters<typeof Container.fromPartial>[0] = {}): Container {
  return Container.fromPartial({
    id: "c".repeat(64),
    podSandboxId: sandboxId,
    metadata: { name: "main" },
    state: ContainerState.CONTAINER_EXITED,
    ...more,
  });
}

function isContainerd(node: FakeNode): boolean {
  return !("containerdFacts" in node) || node.containerdFacts !== undefined;
}

function processesOf({ processes = {} }: FakeNode): Source<ProcessFacts> {
  const now = typeof processes === "function" ? processes() : processes;
  if ("status" in now) return now;
  return read({ plugins: [], shims: [], byContainer: new Map(), netnsInodes: new Set(), ...now });
}

function unexpected(what: string): Promise<never> {
  return Promise.reject(new Error(`unexpected ${what}`));
}

/** A call without a timeout would hang with a hung runtime: it fails the test. */
function withDeadlines<T extends object>(client: T): T {
  return new Proxy(client, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== "function" || name === "close") return value;
      return (...args: readonly unknown[]): unknown => {
        const options = args.at(-1);
        const hasDeadline = typeof options === "object" && options !== null && "timeoutMs" in options;
        if (!hasDeadline) return Promise.reject(new Error(`${String(name)} was called without a deadline`));
        return Reflect.apply(value, target, args);
      };
    },
  });
}

function fakeCri(answers: Partial<CriClient>): CriClient {
  return withDeadlines({
    path: "/run/fake.sock",
    version: () => unexpected("Version"),
    status: () => unexpected("Status"),
    listPodSandbox: () => unexpected("ListPodSandbox"),
    listSandboxStates: () => unexpected("ListPodSandbox"),
    podSandboxStatus: () => unexpected("PodSandboxStatus"),
    podSandboxState: () => unexpected("PodSandboxStatus"),
    listContainers: () => unexpected("ListContainers"),
    containerStatus: () => unexpected("ContainerStatus"),
    stopPodSandbox: () => unexpected("StopPodSandbox"),
    removePodSandbox: () => unexpected("RemovePodSandbox"),
    runPodSandbox: () => unexpected("RunPodSandbox"),
    createContainer: () => unexpected("CreateContainer"),
    startContainer: () => unexpected("StartContainer"),
    stopContainer: () => unexpected("StopContainer"),
    removeContainer: () => unexpected("RemoveContainer"),
    containerEvents: () => {
      throw new Error("unexpected GetContainerEvents");
    },
    close: () => undefined,
    ...answers,
  });
}

export function fakeContainerd(answers: Partial<ContainerdClient> = {}): ContainerdClient {
  return withDeadlines({
    listContainers: () => unexpected("containers"),
    findContainers: () => unexpected("containers"),
    deleteContainer: () => unexpected("the deletion of a container"),
    deleteSandbox: () => unexpected("the deletion of a sandbox"),
    listTasks: () => unexpected("tasks"),
    findTask: () => unexpected("a task"),
    listLeases: () => unexpected("leases"),
    deleteLease: () => unexpected("the deletion of a lease"),
    listSandboxes: () => unexpected("sandboxes"),
    events: () => {
      throw new Error("unexpected events");
    },
    close: () => undefined,
    ...answers,
  });
}
