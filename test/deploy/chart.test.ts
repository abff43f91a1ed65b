import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import manifest from "../../package.json" with { type: "json" };
import { CAPABILITIES } from "../../src/doctor/host.ts";

const CHART = "deploy/helm/unghost";

interface KubeObject {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: unknown;
  readonly spec?: unknown;
}

function objectsIn(...files: readonly string[]): readonly KubeObject[] {
  return files
    .flatMap((file) => parseAllDocuments(readFileSync(file, "utf8")))
    .map((document) => document.toJS() as KubeObject);
}

const rendered = objectsIn("deploy/kubernetes/unghost.yaml");

interface Probe {
  readonly httpGet: { readonly host?: string };
}

interface PodSpec {
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly startupProbe?: Probe;
    readonly livenessProbe?: Probe;
    readonly readinessProbe?: Probe;
    readonly securityContext: { readonly capabilities: { readonly drop: string[]; readonly add: string[] } };
    readonly volumeMounts: readonly { readonly mountPath: string; readonly readOnly?: boolean }[];
  }[];
}

function agentSpec(): PodSpec {
  const daemonSet = rendered.find(({ kind }) => kind === "DaemonSet");
  if (daemonSet === undefined) throw new Error("deploy/kubernetes has no DaemonSet");
  return (daemonSet.spec as { template: { spec: PodSpec } }).template.spec;
}

test("chart and image have the version of package.json", () => {
  const chart = parse(readFileSync(`${CHART}/Chart.yaml`, "utf8")) as { version: string; appVersion: string };
  expect([chart.version, chart.appVersion]).toEqual([manifest.version, manifest.version]);
});

const ROLES_AND_POLICIES = ["agent", "healing", "own-node-only", "viewer", "healer", "heal-requests"];

test("the chart grants what deploy/rbac grants, and restricts it to the node by the same policy", () => {
  const own = objectsIn(...ROLES_AND_POLICIES.map((name) => `deploy/rbac/${name}.yaml`));
  const rights = (objects: readonly KubeObject[]) =>
    objects
      .filter(({ kind }) => /Role$|Policy/.test(kind))
      .map(({ kind, metadata: { name }, rules, spec }) => ({ kind, name, rules, spec }))
      .toSorted((one, other) => `${one.kind}${one.name}`.localeCompare(`${other.kind}${other.name}`));

  expect(rights(rendered)).toEqual(rights(own));
});

test("the agent's container has the capabilities that doctor requires, and no others", () => {
  const [container] = agentSpec().containers;
  expect(container?.securityContext.capabilities).toEqual({ drop: ["ALL"], add: CAPABILITIES.map(({ name }) => name) });
});

test("by default the agents listen on loopback, where their probes ask", () => {
  const [container] = agentSpec().containers;
  const probes = [container?.startupProbe, container?.livenessProbe, container?.readinessProbe];

  expect(container?.args).toContain("--listen=127.0.0.1:20258");
  expect(probes.map((probe) => probe?.httpGet.host)).toEqual(["127.0.0.1", "127.0.0.1", "127.0.0.1"]);
});

test("only the named host directories are writable", () => {
  const [container] = agentSpec().containers;
  const writable = container?.volumeMounts
    .filter(({ readOnly }) => readOnly !== true)
    .map(({ mountPath }) => mountPath);
  expect(writable).toEqual(["/host/var/lib/cni", "/host/var/lib/unghost", "/host/run/unghost"]);
});

test("the schema has every value, and nothing else", () => {
  const values = parse(readFileSync(`${CHART}/values.yaml`, "utf8")) as object;
  const schema = JSON.parse(readFileSync(`${CHART}/values.schema.json`, "utf8")) as { properties: object };
  expect(
    Object.keys(schema.properties)
      .filter((key) => key !== "global")
      .toSorted(),
  ).toEqual(Object.keys(values).toSorted());
});
