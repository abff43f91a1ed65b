import { describe, expect, test } from "vitest";
import { readCri } from "../../src/node/cri-facts.ts";
import type { CriClient } from "../../src/runtime/cri.ts";
import { RuntimeError, type RuntimeErrorKind } from "../../src/runtime/errors.ts";
import { Container, ContainerState, PodSandbox, PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { listAllSandboxes } from "../../src/runtime/lists.ts";

const CALL = { timeoutMs: 1000 };
const SANDBOX = PodSandbox.fromPartial({ id: "a".repeat(64), state: PodSandboxState.SANDBOX_NOTREADY });

/** A dead sandbox with some ended containers; a name that is an error is answered with it. */
function runtimeWith(...names: readonly string[]): CriClient {
  const containers = names.map((name) =>
    Container.fromPartial({
      id: name,
      podSandboxId: SANDBOX.id,
      state: ContainerState.CONTAINER_EXITED,
      metadata: { name },
    }),
  );
  return {
    listPodSandbox: () => Promise.resolve([SANDBOX]),
    listContainers: () => Promise.resolve(containers),
    containerStatus: (id: string) =>
      id === "main"
        ? Promise.resolve({ status: { exitCode: 0, reason: "Completed", finishedAt: 1n, logPath: "/log" } })
        : Promise.reject(new RuntimeError(id as RuntimeErrorKind, "ContainerStatus", "", "")),
  } as unknown as CriClient;
}

function factsOf(cri: CriClient) {
  const listing = listAllSandboxes(cri, () => Promise.resolve([]), CALL);
  return readCri(cri, Promise.resolve(undefined), listing, CALL);
}

describe("exit state of containers", () => {
  test("a timeout loses only that container", async () => {
    const source = await factsOf(runtimeWith("main", "deadline"));

    if (source.status !== "read") throw new Error(source.status);
    expect(source.value.containers.map(({ name, exit, endUnread }) => [name, exit?.exitCode, endUnread])).toEqual([
      ["main", 0, undefined],
      ["deadline", undefined, true],
    ]);
    expect(source.oddities).toEqual([
      { path: "ContainerStatus deadline", reason: expect.stringContaining("did not answer in time") },
    ]);
  });

  test("a container that was removed meanwhile is not odd", async () => {
    const source = await factsOf(runtimeWith("main", "not-found"));

    if (source.status !== "read") throw new Error(source.status);
    expect([source.oddities, source.value.containers.map(({ endUnread }) => endUnread)]).toEqual([
      [],
      [undefined, undefined],
    ]);
  });

  test("another error of the runtime makes the source unread", async () => {
    await expect(factsOf(runtimeWith("main", "unreachable"))).rejects.toMatchObject({ kind: "unreachable" });
  });
});

// CRI-O takes almost four seconds for each container that it has lost.
test.each([
  [1000, 1000],
  [4000, 8000],
  [20_000, 20_000],
])("with a timeout of %i ms the end of a container is waited for %i ms", async (timeoutMs, expected) => {
  const asked: number[] = [];
  const cri = {
    ...runtimeWith("main"),
    containerStatus: (_id: string, options: { readonly timeoutMs: number }) => {
      asked.push(options.timeoutMs);
      return Promise.resolve({ status: undefined });
    },
  } as unknown as CriClient;
  const listing = listAllSandboxes(cri, () => Promise.resolve([]), { timeoutMs });

  await readCri(cri, Promise.resolve(undefined), listing, { timeoutMs });

  expect(asked).toEqual([expected]);
});

describe("a container whose sandbox is not listed", () => {
  type Answer = PodSandboxState | RuntimeErrorKind | undefined;
  const stray = Container.fromPartial({ id: "stray", podSandboxId: "b".repeat(64) });
  const state = (answer: Answer) =>
    typeof answer === "string"
      ? Promise.reject(new RuntimeError(answer, "PodSandboxStatus", "", ""))
      : Promise.resolve(answer);

  test.each<readonly [string, readonly Container[], Answer, number, true | undefined]>([
    ["was removed with its pod meanwhile", [], undefined, 0, undefined],
    ["was created with its pod meanwhile", [stray], PodSandboxState.SANDBOX_READY, 0, undefined],
    ["has none", [stray], undefined, 1, undefined],
    ["may have one: the runtime does not answer", [stray], "deadline", 1, true],
  ])("%s", async (_, second, answer, expected, incomplete) => {
    const lists = [[stray], second];
    const cri = {
      listPodSandbox: () => Promise.resolve([SANDBOX]),
      listContainers: () => Promise.resolve(lists.shift()),
      podSandboxState: () => state(answer),
    } as unknown as CriClient;

    const source = await factsOf(cri);

    if (source.status !== "read") throw new Error(source.status);
    expect(source.value.containers).toHaveLength(expected);
    expect(source.value.sandboxesIncomplete).toBe(incomplete);
  });
});
