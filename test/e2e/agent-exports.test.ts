import { describe, expect, test } from "vitest";
import { until } from "../../lab/poll.ts";
import type { WireState } from "../../src/agent/page/wire.ts";
import { startAgent } from "./running-agent.ts";
import { GUARD_MS, simulatedNode, unghost } from "./unghost.ts";

interface State {
  readonly openAddress?: string;
  readonly heals: readonly {
    readonly outcome: string;
    readonly journalId?: string;
    readonly undo?: readonly string[];
  }[];
}

describe("agent exporters", { timeout: GUARD_MS * 4 }, () => {
  test("warn that the network can read them, offer undo only where possible, and report why a source is unreadable", async () => {
    const node = await simulatedNode();
    node.addSandboxes(3, { state: "half-made" });
    const flags = ["--no-kube", "--listen", "0.0.0.0:0", "--scan-every", "100ms"];
    const agent = startAgent([...flags, ...node.where]);

    const warning = await agent.logged("listening on the network without a token");
    expect(warning).toMatchObject({ level: "warn", next: expect.stringContaining("--token-file") });
    const address = String(warning["address"]).replace("0.0.0.0", "127.0.0.1");
    const get = async (path: string): Promise<string> => await (await fetch(`${address}${path}`)).text();
    expect((JSON.parse(await get("/api/state")) as State).openAddress).toBe(warning["address"]);

    await agent.logged("verdict changed", ({ to }) => to === "ghosts");
    await agent.logged("verdict changed", ({ from, to }) => from === "ghosts" && to === "healthy");
    // A scan may find them gone before the heal itself has ended and is recorded.
    const heals = await until("all heals are recorded", GUARD_MS, async () => {
      const state = JSON.parse(await get("/api/state")) as State;
      return state.heals.length === 3 ? state.heals : undefined;
    });
    for (const { journalId = "", undo } of heals) {
      const taken = await unghost(["undo", journalId, ...node.where]);
      expect([undo, taken.code]).toEqual([undefined, 3]);
    }

    await node.close();
    const blind = await agent.logged("verdict changed", ({ to }) => to === "unknown");
    expect(blind).toMatchObject({ level: "warn", from: "healthy", next: expect.any(String) });
    // The first scan beside the closing runtime may have failed at another source than the ones after it.
    const [what = ""] = String(blind["problem"]).split(": ");
    expect(await get("/readyz")).toContain(what);
  });

  test("of a node whose runtime never answered, the ghosts of the day are unknown and the journal is empty", async () => {
    const node = await simulatedNode();
    await node.close();
    const agent = startAgent(["--no-kube", "--listen", "127.0.0.1:0", "--scan-every", "100ms", ...node.where]);
    const { address } = await agent.logged("listening");
    await agent.logged("verdict changed", ({ to }) => to === "unknown");

    const state = await until("the journal is read", GUARD_MS, async () => {
      const seen = JSON.parse(await (await fetch(`${String(address)}/api/state`)).text()) as WireState;
      return seen.runs === undefined ? undefined : seen;
    });

    expect(state.runs).toEqual([]);
    expect(state.timeline.map(({ unknown }) => unknown)).toEqual(state.timeline.map(() => true));
    expect(state.timeline.length).toBeGreaterThan(0);
  });

  test("do not warn on loopback", async () => {
    const node = await simulatedNode();
    const agent = startAgent(["--no-kube", "--listen", "127.0.0.1:0", ...node.where]);
    const { address } = await agent.logged("listening");

    const state = JSON.parse(await (await fetch(`${String(address)}/api/state`)).text()) as State;

    expect(state.openAddress).toBeUndefined();
    expect(agent.lines.map(({ msg }) => msg)).not.toContain("listening on the network without a token");
  });
});
