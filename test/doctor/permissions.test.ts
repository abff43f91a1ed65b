import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { PERMISSIONS } from "../../src/doctor/sources.ts";

interface Role {
  readonly kind: string;
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

test("doctor checks exactly what deploy/rbac grants", () => {
  const files = ["agent.yaml", "healing.yaml"].map((file) => readFileSync(`deploy/rbac/${file}`, "utf8"));
  const objects = files.flatMap((text) => parseAllDocuments(text)).map((document) => document.toJS() as Role);

  const granted = objects
    .filter(({ kind }) => kind === "ClusterRole" || kind === "Role")
    .flatMap(({ kind, rules }) => rules.flatMap((rule) => inWords(rule, kind === "Role")));

  const asked = PERMISSIONS.map(({ group, resource, verbs, inFleetNamespace = false }) => {
    return `${verbs.join(",")} ${group}/${resource} ${inFleetNamespace}`;
  });
  expect(asked.toSorted()).toEqual(granted.toSorted());
});

function inWords({ apiGroups, resources, verbs }: Role["rules"][number], inNamespace: boolean): readonly string[] {
  return apiGroups.flatMap((group) =>
    resources.map((resource) => `${verbs.join(",")} ${group}/${resource} ${inNamespace}`),
  );
}
