import { randomUUID } from "node:crypto";
import { type Address, kindOf } from "./address.ts";
import { type ApiObject, isApiObject, isRecord, type Refusal } from "./api-object.ts";
import { patched } from "./patch-object.ts";
import type { Store } from "./store.ts";

export interface Written {
  readonly code: 200 | 201;
  readonly object: ApiObject;
}

/** POST to a list. */
export function create(store: Store, address: Address, body: unknown): Written | Refusal {
  if (!isApiObject(body)) return invalid("the body is no object");
  const { metadata } = body;
  const generated = `${metadata.generateName ?? ""}${randomUUID().slice(0, 5)}`;
  const name = metadata.name || generated;
  const path = `${address.path}/${name}`;
  if (store.get(path) !== undefined) {
    return { code: 409, reason: "AlreadyExists", message: `${address.resource} "${name}" already exists` };
  }
  const wrong = wrongNamespace(address, body);
  if (wrong !== undefined) return wrong;
  const made = {
    ...metadata,
    name,
    ...(address.namespace === undefined ? {} : { namespace: address.namespace }),
    uid: randomUUID(),
    creationTimestamp: new Date().toISOString(),
  };
  return { code: 201, object: store.put(path, { ...kindOf(address), ...body, metadata: made }) };
}

/** An event must be in the namespace of its object; for objects without one in `default`. */
function wrongNamespace({ resource, namespace }: Address, body: ApiObject): Refusal | undefined {
  if (body.metadata.namespace !== undefined && body.metadata.namespace !== namespace) {
    return badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const about = body["involvedObject"];
  if (resource !== "events" || !isRecord(about)) return undefined;
  const fits = about["namespace"] ? about["namespace"] === namespace : namespace === "default";
  return fits ? undefined : invalid("involvedObject.namespace: Invalid value: does not match event.namespace");
}

/** PUT. A Lease may be created this way; otherwise the replaced version is required. */
export function replace(store: Store, address: Address, body: unknown): Written | Refusal {
  if (!isApiObject(body)) return invalid("the body is no object");
  if (body.metadata.name !== address.name) {
    return badRequest(
      `the name of the object (${body.metadata.name}) does not match the name on the URL (${address.name})`,
    );
  }
  const before = store.get(address.path);
  if (before === undefined) {
    if (address.resource !== "leases") return missing(address);
    const list = { ...address, path: address.path.slice(0, address.path.lastIndexOf("/")) };
    return create(store, list, body);
  }
  const { resourceVersion } = body.metadata;
  if (address.resource === "leases" && !resourceVersion) {
    return invalid("metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");
  }
  return update(store, address, before, body);
}

export function patch(store: Store, address: Address, body: unknown, contentType: string): Written | Refusal {
  const before = store.get(address.path);
  const isApply = contentType.startsWith("application/apply-patch+yaml");
  if (before === undefined) {
    if (!isApply || address.isStatus) return missing(address);
    const list = { ...address, path: address.path.slice(0, address.path.lastIndexOf("/")) };
    return create(store, list, body);
  }
  const after = patched(before, body, contentType);
  if (after === "unknown type") return { code: 415, reason: "UnsupportedMediaType", message: contentType };
  if (!isApiObject(after)) return invalid("the server rejected our request due to an error in our request");
  return update(store, address, before, after);
}

const WITH_STATUS = ["pods", "nodes", "namespaces", "volumeattachments", "ghostreports", "ghostheals"];

function update(store: Store, address: Address, before: ApiObject, wanted: ApiObject): Written | Refusal {
  const { resourceVersion, uid } = wanted.metadata;
  if (resourceVersion && resourceVersion !== before.metadata.resourceVersion) return modified(address);
  if (uid && uid !== before.metadata.uid) return modified(address);
  const { name, namespace, uid: own, creationTimestamp } = before.metadata;
  // The server stamps each write, by its own clock.
  const managedFields = [{ manager: "stub", operation: "Update", time: new Date().toISOString() }];
  const metadata = { ...wanted.metadata, ...defined({ namespace, uid: own, creationTimestamp }), name, managedFields };
  const { status } = address.isStatus ? wanted : before;
  // Spec and status can each be written only through their own path.
  const half = address.isStatus ? before : wanted;
  const hasStatus = WITH_STATUS.includes(address.resource);
  const after = { ...kindOf(address), ...half, metadata, ...(hasStatus ? { status } : {}) };
  return { code: 200, object: store.put(address.path, after) };
}

function defined(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

export function missing({ resource, name = "" }: Address): Refusal {
  return { code: 404, reason: "NotFound", message: `${resource} "${name}" not found` };
}

function modified({ resource, name = "" }: Address): Refusal {
  const message = `Operation cannot be fulfilled on ${resource} "${name}": the object has been modified; please apply your changes to the latest version and try again`;
  return { code: 409, reason: "Conflict", message };
}

function badRequest(message: string): Refusal {
  return { code: 400, reason: "BadRequest", message };
}

function invalid(message: string): Refusal {
  return { code: 422, reason: "Invalid", message };
}
