import * as v from "valibot";
import type { Check } from "../../doctor/doctor-report.ts";
import { checkEach, type Permission } from "../../doctor/permissions.ts";
import { type Api, getObject } from "../../kube/api.ts";
import { type KubeError, orKubeError } from "../../kube/errors.ts";
import { listTable } from "../../kube/table.ts";
import { type Fleet, readFleet } from "../fleet-nodes.ts";

/** What the commands from a laptop ask for. The roles unghost-viewer and unghost-healer grant it. */
const PERMISSIONS: readonly Permission[] = [
  { group: "", resource: "nodes", verbs: ["list", "get"], neededFor: "kubectl unghost scan, why, heal and doctor" },
  { group: "", resource: "pods", verbs: ["list", "get"], neededFor: "which reports are current, and why" },
  {
    group: "unghost.dev",
    resource: "ghostreports",
    verbs: ["list", "get", "watch"],
    neededFor: "what the agents found",
  },
  { group: "", resource: "events", verbs: ["list"], neededFor: "kubectl unghost why", optional: true },
  {
    group: "unghost.dev",
    resource: "ghostheals",
    verbs: ["create", "get", "delete"],
    neededFor: "kubectl unghost heal",
    optional: true,
  },
];

/** All that the API shows of how unghost works in the cluster. */
export interface FleetDoctorFacts {
  readonly fleet: Fleet;
  readonly permissions: readonly Check[];
  /** Of the API group, as the server serves them, such as `ghostreports/status`. */
  readonly resources: readonly string[] | KubeError;
  readonly policies: readonly AdmissionPolicy[] | KubeError;
  readonly leases: readonly { readonly name: string; readonly holder: string }[] | KubeError;
  readonly runtimes: readonly { readonly node: string; readonly runtime: string }[];
  readonly now: Date;
}

export interface AdmissionPolicy {
  readonly name: string;
  readonly isBound: boolean;
}

/** `namespace`: where the agents' Leases are. */
export async function readDoctorFacts(api: Api, namespace: string, now: Date): Promise<FleetDoctorFacts> {
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  const [fleet, permissions, resources, policies, held, runtimes] = await Promise.all([
    readFleet(api, { names: [] }, now),
    checkEach(api, PERMISSIONS, { fleetNamespace: namespace }),
    orKubeError(readResources(api)),
    orKubeError(readPolicies(api)),
    orKubeError(listTable(api, { path: leases, columns: ["Name", "Holder"] })),
    listTable(api, { path: "/api/v1/nodes", columns: ["Name", "Container-Runtime"] }),
  ]);
  return {
    fleet,
    permissions,
    resources,
    policies,
    leases: Array.isArray(held)
      ? held.map(({ Name: name, Holder: holder }) => ({ name, holder }))
      : (held as KubeError),
    runtimes: runtimes.map((row) => ({ node: row.Name, runtime: row["Container-Runtime"] })),
    now,
  };
}

const ResourcesSchema = v.object({ resources: v.array(v.object({ name: v.string() })) });

async function readResources(api: Api): Promise<readonly string[]> {
  const found = await getObject(api, "/apis/unghost.dev/v1alpha1", ResourcesSchema, "list of resources");
  return found.resources.map(({ name }) => name);
}

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";

async function readPolicies(api: Api): Promise<readonly AdmissionPolicy[]> {
  const [policies, bindings] = await Promise.all([
    listTable(api, { path: `${ADMISSION}/validatingadmissionpolicies`, columns: ["Name"] }),
    listTable(api, { path: `${ADMISSION}/validatingadmissionpolicybindings`, columns: ["PolicyName"] }),
  ]);
  const bound = new Set(bindings.map(({ PolicyName }) => PolicyName));
  return policies.map(({ Name: name }) => ({ name, isBound: bound.has(name) }));
}
