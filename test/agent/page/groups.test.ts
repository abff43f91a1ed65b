import { describe, expect, test } from "vitest";
import { blockedBy, groupsOf } from "../../../src/agent/page/groups.ts";
import type { Standing } from "../../../src/agent/state/state.ts";
import { sightingsOnTheWire } from "./agent-states.ts";

const GIVEN_UP: Standing = { kind: "given-up", message: "", next: "" };

describe("findings by class", () => {
  test("sorts manual findings first, then by severity, then by count", () => {
    const groups = groupsOf(
      sightingsOnTheWire(
        { class: "one-critical", severity: "critical" },
        { class: "info", severity: "info" },
        { class: "two-critical", severity: "critical" },
        { class: "two-critical", severity: "warning" },
        { class: "given-up", severity: "info", standing: GIVEN_UP },
      ),
    );

    expect(groups.map(({ classId, severity }) => [classId, severity])).toEqual([
      ["given-up", "info"],
      ["two-critical", "critical"],
      ["one-critical", "critical"],
      ["info", "info"],
    ]);
  });

  test("sorts given-up findings first within a class, and keeps the order of the others", () => {
    const [group] = groupsOf(
      sightingsOnTheWire({ pod: "a" }, { pod: "b" }, { pod: "c", standing: GIVEN_UP }, { pod: "d" }),
    );

    expect(group?.sightings.map(({ finding }) => finding.subject.pod?.name)).toEqual(["c", "a", "b", "d"]);
  });
});

test("lists each blocked pod once, with the number of findings that block it", () => {
  const sightings = sightingsOnTheWire(
    { blocks: ["an address of network cbr0"], blockedPods: [] },
    { pod: "web-10" },
    { pod: "web-2" },
    { pod: "web-2", blocks: ["the same pod by another finding"] },
    { blocks: [], blockedPods: [] },
  );

  expect(blockedBy(sightings)).toEqual([
    { what: "an address of network cbr0", by: 1 },
    { what: "shop/web-2 cannot start", by: 2 },
    { what: "shop/web-10 cannot start", by: 1 },
  ]);
});
