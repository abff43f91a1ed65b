import { expect, test } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { ensureHelm } from "../../lab/cluster/tools.ts";
import { runOrThrow } from "../../lab/command.ts";
import manifest from "../../package.json" with { type: "json" };

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string }[];
  readonly volumeMounts: readonly { readonly name: string }[];
  readonly resources?: { readonly limits?: { readonly memory?: string } };
  readonly startupProbe?: { readonly failureThreshold: number };
}

interface PodSpec {
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly affinity?: object;
  readonly tolerations?: readonly object[];
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[];
}

interface Rendered {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: object;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template: { readonly spec: PodSpec };
    readonly revisionHistoryLimit?: number;
    readonly endpoints?: readonly object[];
    readonly podMetricsEndpoints?: readonly object[];
    readonly groups?: readonly { readonly name: string; readonly rules: readonly object[] }[];
  };
}

const REPOSITORY = { repository: "ghcr.io/acme/unghost" };

async function rendered(values: object): Promise<readonly Rendered[]> {
  const helm = [await ensureHelm(), "template", "unghost", "deploy/helm/unghost", "--values=-"];
  const { stdout } = await runOrThrow(helm, { stdin: stringify({ image: REPOSITORY, ...values }) });
  return parseAllDocuments(stdout).map((document) => document.toJS() as Rendered);
}

const of = (kind: string, objects: readonly Rendered[]) => objects.filter((one) => one.kind === kind);

function podSpecs(objects: readonly Rendered[]): readonly PodSpec[] {
  const pods = of("Pod", objects).map(({ spec }) => spec as unknown as PodSpec);
  return [...[...of("DaemonSet", objects), ...of("Job", objects)].map(({ spec }) => spec.template.spec), ...pods];
}

function containersOf({ initContainers = [], containers }: PodSpec): readonly Container[] {
  return [...initContainers, ...containers];
}

test("every pod is for Linux, and every container has a memory limit", async () => {
  const specs = podSpecs(await rendered({ guard: { enabled: true } }));

  expect(specs).toHaveLength(3);
  for (const spec of specs) {
    expect(spec.nodeSelector).toEqual({ "kubernetes.io/os": "linux" });
    for (const { name, resources } of containersOf(spec))
      expect([name, resources?.limits?.memory]).toEqual([name, "256Mi"]);
  }
});

test("uninstalling waits for no node that is down: its taints have the effect NoExecute, too", async () => {
  const [job] = of("Job", await rendered({}));

  expect(job?.spec.template.spec.tolerations).toEqual([{ operator: "Exists", effect: "NoSchedule" }]);
});

test.each([
  ["as given", { image: REPOSITORY }, "ghcr.io/acme/unghost"],
  ["by a mirror", { image: { ...REPOSITORY, registry: "mirror.local:5000" } }, "mirror.local:5000/acme/unghost"],
  ["by a global mirror", { global: { imageRegistry: "mirror.local" } }, "mirror.local/acme/unghost"],
  [
    "without a registry of its own",
    { image: { repository: "acme/unghost", registry: "m.local" } },
    "m.local/acme/unghost",
  ],
])("the image %s", async (_how, values, expected) => {
  const images = podSpecs(await rendered(values)).flatMap((spec) => containersOf(spec).map(({ image }) => image));

  expect(new Set(images)).toEqual(new Set([`${expected}:${manifest.version}`]));
});

test("another name is in the name of each object of the release, and in what refers to it", async () => {
  const all = { podMonitor: { enabled: true }, serviceMonitor: { enabled: true }, networkPolicy: { enabled: true } };
  const objects = await rendered({ ...all, fullnameOverride: "ghosts", dashboard: { enabled: true } });
  const ours = objects.filter(({ kind }) => !/CustomResource|Monitor/.test(kind)).map(({ metadata }) => metadata.name);

  expect(ours.filter((name) => !name.startsWith("ghosts-"))).toEqual([]);
  expect(JSON.stringify(objects.filter(({ kind }) => !/CustomResource|ConfigMap/.test(kind)))).not.toMatch(
    /"unghost-(?:agent|token|fleet|healing|withdraw|own-node-only)"/,
  );
});

test("a pool has a DaemonSet, a configuration and nodes of its own", async () => {
  const control = { "node-role.kubernetes.io/control-plane": "" };
  const pools = [
    { name: "control-plane", mode: "observe", nodeSelector: control },
    { name: "workers", affinity: { nodeAffinity: {} }, resources: { limits: { memory: "512Mi" } } },
  ];
  const objects = await rendered({ pools });
  const [first, second] = of("DaemonSet", objects);
  const config = (name: string) => objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === name);
  const configOf = (set: Rendered | undefined) =>
    set?.spec.template.spec.volumes.find(({ configMap }) => configMap !== undefined)?.configMap?.name ?? "";

  expect([first, second].map((set) => set?.spec.selector.matchLabels["unghost.dev/pool"])).toEqual([
    "control-plane",
    "workers",
  ]);
  expect(first?.spec.template.spec.nodeSelector).toEqual({ "kubernetes.io/os": "linux", ...control });
  expect(second?.spec.template.spec.nodeSelector).toEqual({ "kubernetes.io/os": "linux" });
  expect(second?.spec.template.spec.containers[0]?.resources?.limits?.memory).toBe("512Mi");
  expect(config(configOf(first))?.data?.["agent.yaml"]).toContain("observeOnly: true");
  expect(config(configOf(second))?.data?.["agent.yaml"]).not.toContain("observeOnly");
});

test("flags, environment, volumes and containers of one's own reach the agent's pod", async () => {
  const values = {
    commonLabels: { team: "edge" },
    annotations: { "reloader.stakater.com/auto": "true" },
    extraArgs: ["--log-level=debug"],
    extraEnv: [{ name: "HTTPS_PROXY", value: "http://proxy" }],
    extraVolumes: [{ name: "ca", emptyDir: {} }],
    extraVolumeMounts: [{ name: "ca", mountPath: "/ca" }],
    initContainers: [{ name: "before", image: "a" }],
    sidecars: [{ name: "beside", image: "b" }],
    startupProbe: { failureThreshold: 90 },
    revisionHistoryLimit: 3,
  };
  const [set] = of("DaemonSet", await rendered(values));
  const spec = set?.spec.template.spec;
  const [agent] = spec?.containers ?? [];

  expect(set?.metadata).toMatchObject({ labels: { team: "edge" }, annotations: values.annotations });
  expect(set?.spec.revisionHistoryLimit).toBe(3);
  expect(spec?.initContainers?.map(({ name }) => name)).toEqual(["before"]);
  expect(spec?.containers.map(({ name }) => name)).toEqual(["agent", "beside"]);
  expect(agent?.args).toContain("--log-level=debug");
  expect(agent?.env).toContainEqual(values.extraEnv[0]);
  expect(agent?.volumeMounts).toContainEqual(values.extraVolumeMounts[0]);
  expect(spec?.volumes).toContainEqual(values.extraVolumes[0]);
  expect(agent?.startupProbe?.failureThreshold).toBe(90);
});

test("monitors and rules take settings of their own beside the chart's", async () => {
  const relabelings = [{ action: "labeldrop", regex: "pod" }];
  const metricRelabelings = [{ action: "drop", sourceLabels: ["class"] }];
  const monitor = { enabled: true, scrapeTimeout: "5s", annotations: { a: "b" }, relabelings, metricRelabelings };
  const rule = { alert: "Mine", expr: "up == 0" };
  const objects = await rendered({
    podMonitor: monitor,
    serviceMonitor: monitor,
    prometheusRule: { enabled: true, additionalRules: [rule] },
  });

  for (const kind of ["PodMonitor", "ServiceMonitor"]) {
    const [found] = of(kind, objects);
    const [endpoint] = found?.spec.endpoints ?? found?.spec.podMetricsEndpoints ?? [];
    expect(found?.metadata.annotations).toEqual({ a: "b" });
    expect(endpoint).toMatchObject({ scrapeTimeout: "5s", metricRelabelings });
    expect(endpoint).toHaveProperty("relabelings", [
      expect.objectContaining({ targetLabel: "node" }),
      expect.objectContaining({ targetLabel: "instance" }),
      ...relabelings,
    ]);
  }
  expect(of("PrometheusRule", objects)[0]?.spec.groups?.at(-1)).toEqual({ name: "unghost.additional", rules: [rule] });
});
