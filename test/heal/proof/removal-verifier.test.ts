import { expect, test } from "vitest";
import { INTERRUPTED } from "../../../src/heal/proof/fresh-facts.ts";
import { removalVerifier } from "../../../src/heal/proof/runtime-access.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { Container } from "../../../src/runtime/gen/containerd/containers.ts";
import { PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";

const removed = (): Promise<undefined> => Promise.resolve(undefined);

/** A runtime that still has the given records. */
function runtime({
  listed = [],
  recorded = [],
  overflows = false,
}: Partial<Record<"listed" | "recorded", string[]>> & { overflows?: boolean }) {
  const asked: string[] = [];
  const departed = removalVerifier({
    cri: {
      listSandboxStates: () => {
        asked.push("list");
        if (overflows) return Promise.reject(new RuntimeError("overflow", "ListPodSandbox", "", ""));
        return Promise.resolve(listed.map((id) => ({ id, state: PodSandboxState.SANDBOX_NOTREADY })));
      },
      podSandboxState: (id) => Promise.resolve(listed.includes(id) ? PodSandboxState.SANDBOX_NOTREADY : undefined),
    },
    containerd: {
      findContainers: (ids) => {
        asked.push("find");
        const left = recorded.filter((id) => ids.includes(id));
        return Promise.resolve(left.map((id) => Container.fromPartial({ id })));
      },
    },
    queryMs: 1000,
  });
  return { asked, departed };
}

test("a sandbox that is neither listed nor recorded is gone", async () => {
  const { departed } = runtime({});

  expect(await departed("a", removed)).toBe("gone");
});

test.each([false, true])("reports a sandbox that the runtime still has, list too large: %s", async (overflows) => {
  const { departed } = runtime({ listed: ["a"], recorded: ["a", "b"], overflows });

  const all = await Promise.all(["a", "b", "c"].map((id) => departed(id, removed)));

  expect(all).toEqual(["listed", "recorded", "gone"]);
});

test("removals that end together share one check", async () => {
  const { asked, departed } = runtime({});

  await Promise.all(Array.from({ length: 40 }, (_, index) => departed(String(index), removed)));

  expect(asked).toEqual(["list", "find"]);
});

test("a removal that ends after a check started needs a new check", async () => {
  const state = { listed: ["late"] };
  const { departed, asked } = runtime(state);
  const late = Promise.withResolvers<undefined>();

  const slow = departed("late", () => late.promise);
  expect(await departed("early", removed)).toBe("gone");
  state.listed.pop();
  late.resolve(undefined);

  expect(await slow).toBe("gone");
  expect(asked.filter((what) => what === "list")).toHaveLength(2);
});

test("a sandbox whose removal failed is not checked", async () => {
  const { asked, departed } = runtime({});

  expect(await departed("a", () => Promise.resolve(INTERRUPTED))).toEqual({ held: INTERRUPTED });
  expect(asked).toEqual([]);
});

test("a failed removal does not delay the others", async () => {
  const { departed } = runtime({});
  const refusal = new RuntimeError("refused", "RemovePodSandbox", "plugin failed", "");

  const [one, other] = await Promise.allSettled([departed("a", () => Promise.reject(refusal)), departed("b", removed)]);

  expect(one).toEqual({ status: "rejected", reason: refusal });
  expect(other).toEqual({ status: "fulfilled", value: "gone" });
});
