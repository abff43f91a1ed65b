import { property } from "../host/text.ts";
import type { Api } from "../kube/api.ts";
import { type Check, missing, passed } from "./doctor-report.ts";

export interface Permission {
  readonly group: string;
  /** With its subresource: `nodes/status`. */
  readonly resource: string;
  readonly verbs: readonly string[];
  readonly neededFor: string;
  /** Granted only in the fleet's namespace. */
  readonly inFleetNamespace?: true;
}

/** What deploy/rbac grants; a test compares the two. */
export const PERMISSIONS: readonly Permission[] = [
  {
    group: "",
    resource: "pods",
    verbs: ["get", "list", "watch"],
    neededFor: "knowing which pods belong on this node",
  },
  { group: "", resource: "nodes", verbs: ["get", "list", "watch"], neededFor: "pause marks, and the fleet's breaker" },
  { group: "", resource: "nodes/status", verbs: ["patch"], neededFor: "the condition GhostSandboxes" },
  { group: "", resource: "namespaces", verbs: ["get", "list", "watch"], neededFor: "unghost.dev/ignore on namespaces" },
  { group: "", resource: "events", verbs: ["create", "patch", "list"], neededFor: "events, and what kubelet reports" },
  { group: "storage.k8s.io", resource: "csinodes", verbs: ["get"], neededFor: "the CSI drivers of this node" },
  { group: "storage.k8s.io", resource: "volumeattachments", verbs: ["get", "list"], neededFor: "stuck attachments" },
  { group: "", resource: "persistentvolumes", verbs: ["get"], neededFor: "the claims of stuck volumes" },
  {
    group: "coordination.k8s.io",
    resource: "leases",
    verbs: ["list"],
    neededFor: "whether a volume's attacher is alive",
  },
  {
    group: "coordination.k8s.io",
    resource: "leases",
    verbs: ["get", "create", "update"],
    neededFor: "healing slots across the fleet",
    inFleetNamespace: true,
  },
  { group: "", resource: "pods", verbs: ["delete"], neededFor: "restarting pods that wait in back-off after a heal" },
];

const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/** Sends one SelfSubjectAccessReview for each verb. */
export async function checkPermissions(api: Api, fleetNamespace: string): Promise<readonly Check[]> {
  return await Promise.all(PERMISSIONS.map((permission) => checkPermission(api, permission, fleetNamespace)));
}

async function checkPermission(api: Api, permission: Permission, fleetNamespace: string): Promise<Check> {
  const { group, resource, verbs, neededFor, inFleetNamespace } = permission;
  const id = `${verbs.join(", ")} ${resource}${group === "" ? "" : `.${group}`}`;
  const namespace = inFleetNamespace === true ? { namespace: fleetNamespace } : {};
  const [name = "", subresource] = resource.split("/");
  try {
    const answers = await Promise.all(
      verbs.map(async (verb) => {
        const attributes = { group, resource: name, verb, ...(subresource ? { subresource } : {}), ...namespace };
        return { verb, isAllowed: await isAllowed(api, attributes) };
      }),
    );
    const denied = answers.filter((answer) => !answer.isAllowed).map(({ verb }) => verb);
    if (denied.length === 0) return passed(id, inFleetNamespace === true ? `allowed in ${fleetNamespace}` : "allowed");
    return missing(id, `denied: ${denied.join(", ")}`, neededFor, "Grant it: see deploy/rbac.");
  } catch (error) {
    return missing(id, `could not be asked: ${error instanceof Error ? error.message : String(error)}`, neededFor);
  }
}

async function isAllowed(api: Api, resourceAttributes: object): Promise<boolean> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes },
  };
  return property(property(await api.create(REVIEWS, review), "status"), "allowed") === true;
}
