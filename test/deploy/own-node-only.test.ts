import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: readonly (Rule & { readonly verbs: readonly string[] })[];
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace: string }[];
  readonly spec?: {
    readonly failurePolicy: string;
    readonly matchConstraints: {
      readonly resourceRules: readonly (Rule & { readonly operations: readonly string[] })[];
    };
    readonly matchConditions: readonly { readonly expression: string }[];
    readonly policyName: string;
    readonly validationActions: readonly string[];
  };
}

function manifests(file: string): readonly Manifest[] {
  return parseAllDocuments(readFileSync(`deploy/rbac/${file}`, "utf8")).map((one) => one.toJS() as Manifest);
}

const roles = [...manifests("agent.yaml"), ...manifests("healing.yaml")];
const [policy, binding] = manifests("own-node-only.yaml");
const READING = ["get", "list", "watch"];
const OPERATIONS: Readonly<Record<string, string>> = {
  create: "CREATE",
  update: "UPDATE",
  patch: "UPDATE",
  delete: "DELETE",
};

describe("the policy that restricts an agent to its node", () => {
  test("covers every write that the agent's roles allow", () => {
    const writes = roles.flatMap(({ rules = [] }) =>
      rules.flatMap(({ apiGroups, resources, verbs }) =>
        verbs
          .filter((verb) => !READING.includes(verb))
          .flatMap((verb) => apiGroups.flatMap((group) => resources.map((resource) => ({ group, resource, verb })))),
      ),
    );
    const judged = policy?.spec?.matchConstraints.resourceRules ?? [];
    const isJudged = ({ group, resource, verb }: (typeof writes)[number]) =>
      judged.some(
        ({ apiGroups, resources, operations }) =>
          apiGroups.includes(group) && resources.includes(resource) && operations.includes(OPERATIONS[verb] ?? verb),
      );

    expect(writes.length).toBeGreaterThan(0);
    expect(writes.filter((write) => !isJudged(write))).toEqual([]);
  });

  test("matches the agent's ServiceAccount, denies, and fails closed", () => {
    const accounts = new Set(
      roles.flatMap(({ subjects = [] }) =>
        subjects.map(({ namespace, name }) => `system:serviceaccount:${namespace}:${name}`),
      ),
    );

    expect(policy?.spec?.matchConditions.map(({ expression }) => expression)).toEqual(
      [...accounts].map((account) => `request.userInfo.username == "${account}"`),
    );
    expect(policy?.spec?.failurePolicy).toBe("Fail");
    expect(binding?.spec).toMatchObject({ policyName: policy?.metadata.name, validationActions: ["Deny"] });
  });
});
