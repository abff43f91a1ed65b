import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { CONDITION_TYPES } from "../../src/agent/limits/breaker.ts";

interface Rule {
  readonly kind: string;
  readonly spec: {
    readonly conditions?: readonly { readonly type: string; readonly requiredStatus: string }[];
    readonly unhealthyConditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

const rules = globSync("deploy/conditions/*.yaml").map((path) => parse(readFileSync(path, "utf8")) as Rule);

test("the objects for other controllers name conditions that the agents publish, or kubelet's", () => {
  const types = rules.flatMap(({ spec }) => [...(spec.conditions ?? []), ...(spec.unhealthyConditions ?? [])]);

  expect(types.length).toBeGreaterThan(1);
  expect(types.map(({ type }) => type).filter((type) => type !== "Ready")).toEqual(
    expect.arrayContaining(["SandboxCreation"]),
  );
  for (const { type } of types) expect([...CONDITION_TYPES, "Ready"]).toContain(type);
});

test("none of them acts on a SandboxCreation that is Unknown", () => {
  const acts = rules.flatMap(({ spec }) => spec.unhealthyConditions ?? []);
  const required = rules.flatMap(({ spec }) => spec.conditions ?? []);

  expect(acts.filter(({ type }) => type === "SandboxCreation").map(({ status }) => status)).toEqual(["False"]);
  expect(required.map(({ requiredStatus }) => requiredStatus)).toEqual(["True"]);
});
