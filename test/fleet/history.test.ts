import { describe, expect, test } from "vitest";
import { clusterOf, fleetRig, reportObject } from "./fleet-rig.ts";

const HEAL = {
  at: "2026-03-01T11:00:00Z",
  run: "0kq3v8x2m1abcd",
  by: "agent",
  class: "shim-leak",
  subject: "shop/web-0",
  outcome: "done",
};
const CLUSTER = clusterOf({
  nodes: [
    ["n1", "Ready"],
    ["n2", "Ready"],
  ],
  reports: [reportObject("n1", { heals: [HEAL] })],
});

describe("unghost fleet history", () => {
  test("shows the last heals of a node with the run in its journal", async () => {
    const { fleet } = await fleetRig(CLUSTER);

    const { code, stdout } = await fleet("history", "n1");

    expect(stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["NODE", "TIME", "BY", "RESULT", "CLASS", "SUBJECT", "RUN"],
      ["n1", HEAL.at, "agent", "done", "shim-leak", "shop/web-0", HEAL.run],
      [""],
    ]);
    expect(code).toBe(0);
  });

  test("prints a document with -o json", async () => {
    const { fleet } = await fleetRig(CLUSTER);

    const { stdout } = await fleet("history", "n1", "-o", "json");

    expect(JSON.parse(stdout)).toMatchObject({ kind: "FleetHistory", items: [{ node: "n1", ...HEAL }] });
  });

  test("exits 2 for a node without a report, and needs a node", async () => {
    const { fleet } = await fleetRig(CLUSTER);

    expect(await fleet("history", "n2")).toMatchObject({ code: 2, stderr: "unghost: n2 has no report of an agent\n" });
    expect(await fleet("history")).toMatchObject({ code: 64 });
  });
});
