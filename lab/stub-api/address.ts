/** A parsed path of the API: `/api/v1/namespaces/x/pods/web/status` and the like. */
export interface Address {
  /** Of the object or the list, without a subresource. */
  readonly path: string;
  readonly group: string;
  readonly namespace?: string;
  readonly resource: string;
  /** Missing for a list. */
  readonly name?: string;
  readonly isStatus: boolean;
}

const PATH = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/[^/]))?\/([^/]+)(?:\/([^/]+))?(\/status)?$/;

export function parseAddress(path: string): Address | undefined {
  const [, group, namespace, resource, name, status] = PATH.exec(path) ?? [];
  if (group === undefined || resource === undefined) return undefined;
  return {
    path: path.slice(0, path.length - (status?.length ?? 0)),
    group,
    ...(namespace === undefined ? {} : { namespace: decodeURIComponent(namespace) }),
    resource,
    ...(name === undefined ? {} : { name: decodeURIComponent(name) }),
    isStatus: status !== undefined,
  };
}

/** Whether an object's path belongs to a list: `/api/v1/pods` is every pod, of any namespace. */
export function isListed(list: Address, path: string): boolean {
  if (!path.startsWith(`${list.group}/`)) return false;
  const one = parseAddress(path);
  return one?.resource === list.resource && (list.namespace === undefined || list.namespace === one.namespace);
}

const KINDS: Readonly<Record<string, string>> = {
  "network-attachment-definitions": "NetworkAttachmentDefinition",
  pods: "Pod",
  nodes: "Node",
  namespaces: "Namespace",
  events: "Event",
  persistentvolumes: "PersistentVolume",
  leases: "Lease",
  volumeattachments: "VolumeAttachment",
  csinodes: "CSINode",
  ghostreports: "GhostReport",
  ghostheals: "GhostHeal",
};

export function kindOf({ resource, group }: Address): { readonly kind: string; readonly apiVersion: string } {
  return { kind: KINDS[resource] ?? "Object", apiVersion: group.replace(/^\/apis?\//, "") };
}
