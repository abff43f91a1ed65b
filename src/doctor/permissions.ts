import { property } from "../host/text.ts";
import type { Api } from "../kube/api.ts";
import { absentCheck, type Check, missing, optionalCheck, passed } from "./doctor-report.ts";

export interface Permission {
  readonly group: string;
  /** With its subresource: `nodes/status`. */
  readonly resource: string;
  readonly verbs: readonly string[];
  readonly neededFor: string;
  /** A chart that may not heal does not grant it. */
  readonly optional?: true;
  /** Granted only in the fleet's namespace. */
  readonly inFleetNamespace?: true;
  /** What kubelet's own credentials have of it, limited to its node: NodeRestriction refuses the rest. Nothing if missing. */
  readonly ofNode?: { readonly verbs: readonly string[]; readonly by?: "metadata.name" | "spec.nodeName" };
}

/** What deploy/rbac grants; a test compares the two. */
export const PERMISSIONS: readonly Permission[] = [
  {
    group: "",
    resource: "pods",
    verbs: ["get", "list", "watch"],
    neededFor: "knowing which pods belong on this node",
    ofNode: { verbs: ["list", "watch"], by: "spec.nodeName" },
  },
  {
    group: "",
    resource: "nodes",
    verbs: ["get", "list", "watch"],
    neededFor: "pause marks, and the fleet's breaker",
    ofNode: { verbs: ["get", "list", "watch"], by: "metadata.name" },
  },
  {
    group: "",
    resource: "nodes/status",
    verbs: ["patch"],
    neededFor: "the condition GhostSandboxes",
    ofNode: { verbs: ["patch"], by: "metadata.name" },
  },
  { group: "", resource: "namespaces", verbs: ["get", "list", "watch"], neededFor: "unghost.dev/ignore on namespaces" },
  {
    group: "",
    resource: "events",
    verbs: ["create", "patch", "list"],
    neededFor: "events, and what kubelet reports",
    ofNode: { verbs: ["create", "patch"] },
  },
  {
    group: "storage.k8s.io",
    resource: "csinodes",
    verbs: ["get"],
    neededFor: "the CSI drivers of this node",
    ofNode: { verbs: ["get"], by: "metadata.name" },
  },
  { group: "storage.k8s.io", resource: "volumeattachments", verbs: ["get", "list"], neededFor: "stuck attachments" },
  { group: "", resource: "persistentvolumes", verbs: ["get"], neededFor: "the claims of stuck volumes" },
  {
    group: "coordination.k8s.io",
    resource: "leases",
    verbs: ["list"],
    neededFor: "whether a volume's attacher is alive",
  },
  {
    group: "unghost.dev",
    resource: "ghostreports",
    verbs: ["get", "create", "patch", "delete"],
    neededFor: "the GhostReport of this node",
  },
  {
    group: "unghost.dev",
    resource: "ghostreports/status",
    verbs: ["patch"],
    neededFor: "the GhostReport of this node",
  },
  {
    group: "unghost.dev",
    resource: "ghostheals",
    verbs: ["list", "watch", "delete"],
    neededFor: "requests to heal this node",
  },
  { group: "unghost.dev", resource: "ghostheals/status", verbs: ["patch"], neededFor: "requests to heal this node" },
  {
    group: "coordination.k8s.io",
    resource: "leases",
    verbs: ["get", "create", "update"],
    neededFor: "healing slots across the fleet",
    inFleetNamespace: true,
  },
  {
    group: "",
    resource: "pods",
    verbs: ["delete"],
    neededFor: "restarting pods that wait in back-off after a heal",
    optional: true,
    ofNode: { verbs: ["delete"] },
  },
];

const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

export interface Asker {
  readonly fleetNamespace: string;
  /** The node whose kubelet's credentials are used, if they are. */
  readonly nodeOfCredentials?: string | undefined;
}

/** Sends one SelfSubjectAccessReview for each verb, limited as the request itself is. */
export async function checkPermissions(api: Api, asker: Asker): Promise<readonly Check[]> {
  const node = asker.nodeOfCredentials;
  if (node === undefined) return await checkEach(api, PERMISSIONS, asker);
  const checks = PERMISSIONS.map(async (permission): Promise<readonly Check[]> => {
    const verbs = permission.ofNode?.verbs ?? [];
    const others = permission.verbs.filter((verb) => !verbs.includes(verb));
    return [
      ...(verbs.length === 0 ? [] : [await checkPermission(api, { ...permission, verbs }, asker)]),
      ...(others.length === 0 ? [] : [notForNodes({ ...permission, verbs: others })]),
    ];
  });
  return (await Promise.all(checks)).flat();
}

export async function checkEach(api: Api, permissions: readonly Permission[], asker: Asker): Promise<readonly Check[]> {
  return await Promise.all(permissions.map((one) => checkPermission(api, one, asker)));
}

function notForNodes(permission: Permission): Check {
  return absentCheck(
    idOf(permission),
    `not with kubelet's credentials (${permission.neededFor}): the agent in the cluster has it`,
  );
}

function idOf({ group, resource, verbs }: Permission): string {
  return `${verbs.join(", ")} ${resource}${group === "" ? "" : `.${group}`}`;
}

async function checkPermission(api: Api, permission: Permission, asker: Asker): Promise<Check> {
  const check = await askPermission(api, permission, asker);
  return permission.optional === true ? optionalCheck(check) : check;
}

async function askPermission(api: Api, permission: Permission, asker: Asker): Promise<Check> {
  const { verbs, neededFor, inFleetNamespace } = permission;
  const { fleetNamespace } = asker;
  const id = idOf(permission);
  try {
    const answers = await Promise.all(
      verbs.map(async (verb) => ({ verb, isAllowed: await isAllowed(api, attributesOf(permission, verb, asker)) })),
    );
    const denied = answers.filter((answer) => !answer.isAllowed).map(({ verb }) => verb);
    if (denied.length === 0) return passed(id, inFleetNamespace === true ? `allowed in ${fleetNamespace}` : "allowed");
    return missing(id, `denied: ${denied.join(", ")}`, neededFor, "Grant it: see deploy/rbac.");
  } catch (error) {
    return missing(id, `could not be asked: ${error instanceof Error ? error.message : String(error)}`, neededFor);
  }
}

/** Unlimited, a list is refused to a node that may list its own pods. */
function attributesOf(
  permission: Permission,
  verb: string,
  { fleetNamespace, nodeOfCredentials: node }: Asker,
): object {
  const { group, resource, inFleetNamespace, ofNode } = permission;
  const [name = "", subresource] = resource.split("/");
  const by = node === undefined ? undefined : ofNode?.by;
  return {
    group,
    resource: name,
    verb,
    subresource,
    namespace: inFleetNamespace === true ? fleetNamespace : undefined,
    name: by === "metadata.name" ? node : undefined,
    fieldSelector:
      by === undefined || (verb !== "list" && verb !== "watch")
        ? undefined
        : { requirements: [{ key: by, operator: "In", values: [node] }] },
  };
}

async function isAllowed(api: Api, resourceAttributes: object): Promise<boolean> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes },
  };
  return property(property(await api.create(REVIEWS, review), "status"), "allowed") === true;
}
