import type { Address } from "./address.ts";
import { isRecord, type Refusal } from "./api-object.ts";
import type { Store } from "./store.ts";
import { missing, type Written } from "./write-object.ts";

/** A failed precondition is a conflict; an object with finalizers is only marked, and its owners remove them. */
export function remove(store: Store, address: Address, body: unknown): Written | Refusal {
  const object = store.get(address.path);
  if (object === undefined) return missing(address);
  const { metadata } = object;
  const preconditions = isRecord(body) && isRecord(body["preconditions"]) ? body["preconditions"] : {};
  for (const [field, label] of [
    ["uid", "UID"],
    ["resourceVersion", "ResourceVersion"],
  ] as const) {
    const wanted = preconditions[field];
    if (wanted === undefined || wanted === metadata[field]) continue;
    const message = `Precondition failed: ${label} in precondition: ${JSON.stringify(wanted)}, ${label} in object meta: ${metadata[field] ?? ""}`;
    return { code: 409, reason: "Conflict", message };
  }
  const { finalizers = [] } = metadata;
  const deletionTimestamp = metadata["deletionTimestamp"] ?? new Date().toISOString();
  const marked = { ...object, metadata: { ...metadata, deletionTimestamp } };
  if (finalizers.length > 0) return { code: 200, object: store.put(address.path, marked) };
  // A watch reports that a pod is marked before it reports its deletion.
  if (address.resource === "pods") store.put(address.path, marked);
  store.remove(address.path);
  return { code: 200, object: GIVES_OBJECT.includes(address.resource) ? object : SUCCESS };
}

/** For these the object is returned, for others only a Status. */
const GIVES_OBJECT = ["pods", "persistentvolumes", "volumeattachments", "csinodes"];
const SUCCESS = { kind: "Status", apiVersion: "v1", metadata: { name: "" }, status: "Success" };
