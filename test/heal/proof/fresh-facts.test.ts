import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { freshFacts } from "../../../src/heal/proof/fresh-facts.ts";
import type { PodSandboxFilter } from "../../../src/runtime/cri.ts";
import { RuntimeError } from "../../../src/runtime/errors.ts";
import { type PodSandbox, PodSandboxState } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { tempDir } from "../../support/temp-dir.ts";

const ID = "a".repeat(64);

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const NODE = { root: "/", runtime: { socketPath: "/run/none.sock", cniBinDirs: [] } };

/** A runtime that counts its calls; its list may exceed the message limit. */
function runtime(listed: readonly string[], tooLarge = false) {
  const asked: (PodSandboxFilter | undefined)[] = [];
  const listPodSandbox = (filter: PodSandboxFilter | undefined) => {
    asked.push(filter);
    return Promise.resolve(listed.map((id) => ({ id }) as PodSandbox));
  };
  const listSandboxStates = () => {
    asked.push(undefined);
    if (tooLarge) return Promise.reject(new RuntimeError("overflow", "ListPodSandbox", "larger than max", ""));
    return Promise.resolve(listed.map((id) => ({ id, state: PodSandboxState.SANDBOX_NOTREADY })));
  };
  const cri = { listPodSandbox, listSandboxStates, listContainers: () => Promise.resolve([]) };
  return { asked, facts: freshFacts({ ...NODE, cniCacheDirs: [], cri, containerd: undefined, queryMs: 1000 }) };
}

describe("freshFacts", () => {
  test("shares one read among all callers within 500 ms", async () => {
    const { asked, facts } = runtime([ID]);
    await Promise.all([facts.sandbox(ID), facts.sandbox("other")]);
    vi.advanceTimersByTime(400);
    expect(await facts.sandbox(ID)).toMatchObject({ id: ID });
    expect(asked).toHaveLength(1);
    vi.advanceTimersByTime(200);
    await facts.sandbox(ID);
    expect(asked).toHaveLength(2);
  });

  test("reads again after renew()", async () => {
    const { asked, facts } = runtime([ID]);
    await facts.sandbox(ID);
    facts.renew();
    vi.advanceTimersByTime(1);
    await facts.sandbox(ID);
    expect(asked).toHaveLength(2);
  });

  test("asks for each sandbox by id when the whole list exceeds the message size limit", async () => {
    const { asked, facts } = runtime([ID], true);
    expect(await facts.sandbox(ID)).toMatchObject({ id: ID });
    expect(await facts.sandbox("other")).toBeUndefined();
    expect(asked).toEqual([undefined, { id: ID }, { id: "other" }]);
  });

  test("resultFiles names files and directories of the sandbox", async () => {
    const dir = tempDir();
    onTestFinished(() => dir.remove());
    const root = dir.path;
    mkdirSync(join(root, "var/lib/cni/results"), { recursive: true });
    writeFileSync(join(root, `var/lib/cni/results/cbr0-${ID}-eth0`), "");
    mkdirSync(join(root, `var/lib/cni/results/lo-${ID}-lo`));
    const none = () => Promise.resolve([]);
    const cri = { listPodSandbox: none, listSandboxStates: none, listContainers: none };
    const cniCacheDirs = ["/var/lib/cni", "/gone"];
    const facts = freshFacts({ ...NODE, root, cniCacheDirs, cri, containerd: undefined, queryMs: 1000 });
    const found = await facts.resultFiles(ID);
    expect(found.toSorted()).toEqual([`/var/lib/cni/results/cbr0-${ID}-eth0`, `/var/lib/cni/results/lo-${ID}-lo`]);
  });
});
