import * as v from "valibot";
import type { Api } from "../kube/api.ts";
import { KubeError } from "../kube/errors.ts";
import { listAll } from "../kube/list.ts";
import { CNI_DIRECTORIES } from "../kube/objects.ts";
import type { Risk } from "./doctor-report.ts";

const ContainerSchema = v.object({
  name: v.string(),
  image: v.nullish(v.string()),
  resources: v.nullish(v.object({ limits: v.nullish(v.record(v.string(), v.unknown())) })),
  readinessProbe: v.nullish(v.unknown()),
  livenessProbe: v.nullish(v.unknown()),
});

const PodSchema = v.object({
  metadata: v.object({
    name: v.string(),
    namespace: v.string(),
    ownerReferences: v.nullish(v.array(v.object({ kind: v.string(), name: v.string() }))),
  }),
  spec: v.object({
    priorityClassName: v.nullish(v.string()),
    priority: v.nullish(v.number()),
    containers: v.array(ContainerSchema),
    initContainers: v.nullish(v.array(ContainerSchema)),
    volumes: v.nullish(v.array(v.object({ hostPath: v.nullish(v.object({ path: v.string() })) }))),
  }),
});
type Pod = v.InferOutput<typeof PodSchema>;

/** The priority of system-cluster-critical, the lower one of the two. */
const CRITICAL = 2_000_000_000;

/** The DaemonSets that install CNI plugins, by their pods on this node. A cluster that refuses the list is no risk. */
export async function cniPodRisks(api: Api, nodeName: string): Promise<readonly Risk[]> {
  const query = { fieldSelector: `spec.nodeName=${nodeName}` };
  try {
    const pods = await listAll(api, { path: "/api/v1/pods", query, item: PodSchema });
    return pods.flatMap(riskOf);
  } catch (error) {
    if (error instanceof KubeError) return [];
    throw error;
  }
}

export function riskOf(pod: Pod): readonly Risk[] {
  const { metadata, spec } = pod;
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === "DaemonSet");
  const isCni = spec.volumes?.some(({ hostPath }) => CNI_DIRECTORIES.test(hostPath?.path ?? "")) === true;
  if (owner === undefined || !isCni) return [];
  const name = `${metadata.namespace}/${owner.name}`;
  return [...unprotected(name, spec), ...mixedImages(name, spec)];
}

function unprotected(name: string, { priority, priorityClassName, containers }: Pod["spec"]): readonly Risk[] {
  const isCritical = (priority ?? 0) >= CRITICAL || priorityClassName?.startsWith("system-") === true;
  const lacking = [
    ...(isCritical ? [] : ["priority class"]),
    ...(containers.every(({ resources }) => resources?.limits?.["memory"] !== undefined) ? [] : ["memory limit"]),
    ...(containers.some((one) => Boolean(one.readinessProbe ?? one.livenessProbe)) ? [] : ["probe"]),
  ];
  if (lacking.length === 0) return [];
  const settings = lacking.map((one) => SETTINGS[one] ?? one).join("; ");
  return [
    {
      id: "CNI DaemonSet",
      detail: `${name} has no ${lacking.join(", no ")}: the kernel and kubelet end it early, and while it is away no pod starts or stops`,
      end: `In the template of DaemonSet ${name}: ${settings}.`,
    },
  ];
}

const SETTINGS: Readonly<Record<string, string>> = {
  "priority class": "priorityClassName: system-node-critical",
  "memory limit": "resources.limits.memory, above its peak while all pods of a node start at once",
  probe: "a readinessProbe on what its plugin connects to",
};

/** The installer copies the plugin of its own image, and the daemon runs from another one. */
function mixedImages(name: string, { containers, initContainers }: Pod["spec"]): readonly Risk[] {
  const multus = [...containers, ...(initContainers ?? [])].flatMap(({ image }) =>
    image?.includes("multus") === true ? [image] : [],
  );
  const images = [...new Set(multus)];
  if (images.length < 2) return [];
  return [
    {
      id: "multus shim and daemon",
      detail: `the containers of ${name} have different images: ${images.join(", ")}`,
      end: `Use one image in the template of DaemonSet ${name}, for its installer and its daemon.`,
    },
  ];
}
