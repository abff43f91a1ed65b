import { expect, test } from "vitest";
import { readContainerd, readTasks, unansweredShims } from "../../src/node/containerd-facts.ts";
import type { ContainerdClient } from "../../src/runtime/containerd.ts";
import { RuntimeError, type RuntimeErrorKind } from "../../src/runtime/errors.ts";
import { Container } from "../../src/runtime/gen/containerd/containers.ts";
import { Process, Status } from "../../src/runtime/gen/containerd/tasks.ts";
import type { CallOptions } from "../../src/runtime/grpc.ts";
import { fakeContainerd } from "../heal/fake-node.ts";

const CALL = { timeoutMs: 4000 };
const RUNNING = processOf("web", Status.RUNNING);

function processOf(id: string, status: Status): Process {
  return Process.fromPartial({ id, pid: 7, status });
}

function refusal(kind: RuntimeErrorKind): RuntimeError {
  return new RuntimeError(kind, "Get", "context deadline exceeded", "");
}

/** Records with the answer to the request for each task; the list is late. */
function hungNode(answers: Readonly<Record<string, Process | RuntimeErrorKind | undefined>>): ContainerdClient {
  return fakeContainerd({
    listTasks: () => Promise.reject(refusal("deadline")),
    listContainers: () =>
      Promise.resolve(
        Object.keys(answers).map((id) =>
          Container.fromPartial({
            id,
            labels: { "io.kubernetes.pod.namespace": "shop", "io.kubernetes.pod.name": `pod-${id}` },
          }),
        ),
      ),
    findTask: (id) => {
      const answer = answers[id];
      return typeof answer === "string" ? Promise.reject(refusal(answer)) : Promise.resolve(answer);
    },
    listLeases: () => Promise.resolve([]),
    listSandboxes: () => Promise.resolve([]),
  });
}

test("tasks come from one list", async () => {
  const tasks = await readTasks(fakeContainerd({ listTasks: () => Promise.resolve([RUNNING]) }), CALL);

  expect(tasks).toEqual([{ containerId: "web", pid: 7, status: "running" }]);
});

/** At its deadline, containerd returns the tasks that it has read so far. */
test("a list is not taken at its deadline: it would lack tasks", async () => {
  const client = {
    ...hungNode({ web: RUNNING }),
    listTasks: ({ timeoutMs, signal }: CallOptions) =>
      new Promise<readonly Process[]>((resolve, reject) => {
        const partial = setTimeout(() => resolve([]), timeoutMs);
        signal?.addEventListener("abort", () => {
          clearTimeout(partial);
          reject(refusal("deadline"));
        });
      }),
  };

  expect(await readTasks(client, { timeoutMs: 200 })).toHaveLength(1);
});

test("if the list is late, a hung shim costs only its own task", async () => {
  const client = hungNode({
    web: RUNNING,
    hung: "deadline",
    "hung-2.3": "refused",
    "hung-1.6": processOf("hung-1.6", Status.UNKNOWN),
    ended: undefined,
  });

  const facts = await readContainerd(client, CALL);

  expect(facts.tasks.map(({ containerId, status }) => [containerId, status])).toEqual([
    ["web", "running"],
    ["hung", "unanswered"],
    ["hung-2.3", "unanswered"],
    ["hung-1.6", "unanswered"],
  ]);
  expect(unansweredShims(facts).map(({ path }) => path)).toEqual([
    "shim of shop/pod-hung",
    "shim of shop/pod-hung-2.3",
    "shim of shop/pod-hung-1.6",
  ]);
});

test.each<RuntimeErrorKind>(["unreachable", "cancelled"])("a runtime that is %s is an error", async (kind) => {
  const listing = fakeContainerd({ listTasks: () => Promise.reject(refusal(kind)) });

  await expect(readTasks(listing, CALL)).rejects.toMatchObject({ kind });
  await expect(readTasks(hungNode({ web: kind }), CALL)).rejects.toMatchObject({ kind });
});
