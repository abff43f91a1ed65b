import * as v from "valibot";
import type { Api } from "./api.ts";
import { KubeError, unlessMissing } from "./kube-error.ts";
import { listAll, type Page, pagesOf } from "./list.ts";

const PATH = "/apis/storage.k8s.io/v1/volumeattachments";

const failure = v.nullish(v.object({ message: v.nullish(v.string()), time: v.nullish(v.string()) }));

const AttachmentSchema = v.object({
  metadata: v.object({
    name: v.string(),
    uid: v.string(),
    resourceVersion: v.nullish(v.string()),
    creationTimestamp: v.string(),
    deletionTimestamp: v.nullish(v.string()),
    finalizers: v.nullish(v.array(v.string())),
  }),
  spec: v.object({
    attacher: v.string(),
    nodeName: v.string(),
    source: v.object({ persistentVolumeName: v.nullish(v.string()) }),
  }),
  status: v.nullish(v.object({ attached: v.nullish(v.boolean()), attachError: failure, detachError: failure })),
});

/** The cluster's wish that a volume be attached to a node, and how far that has got. */
export interface ApiAttachment {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly attacher: string;
  readonly node: string;
  /** Missing for a volume that a pod spells out in place. */
  readonly volume?: string;
  readonly attached: boolean;
  readonly createdAt: Date;
  readonly deleting: boolean;
  /** When its deletion was asked for. */
  readonly deletedAt?: Date;
  readonly finalizers: readonly string[];
  readonly error?: string;
}

/** All of the cluster, past the server's cache: the API selects them by nothing but their name. */
export async function listAttachments(api: Api): Promise<readonly ApiAttachment[]> {
  return (await listAll(api, { path: PATH, item: AttachmentSchema, fresh: true })).map(toAttachment);
}

/** The same, a page at a time, for callers that keep little of it. */
export async function* attachmentPages(api: Api): AsyncGenerator<Page<ApiAttachment>> {
  for await (const page of pagesOf(api, { path: PATH, item: AttachmentSchema, fresh: true }))
    yield { ...page, items: page.items.map(toAttachment) };
}

/** As the attach/detach controller and kubelet call the attachment of a volume to a node. */
export function attachmentName(handle: string, driver: string, node: string): string {
  // A static import would cost 2 ms at every start.
  const { createHash } = process.getBuiltinModule("node:crypto");
  return `csi-${createHash("sha256").update(`${handle}${driver}${node}`).digest("hex")}`;
}

/** As it is right now, with the whole object for callers that keep it; undefined when there is none. */
export async function getAttachment(
  api: Api,
  name: string,
): Promise<{ readonly object: unknown; readonly attachment: ApiAttachment } | undefined> {
  const path = pathOf(name);
  const object = await unlessMissing(api.get(path));
  if (object === undefined) return undefined;
  const result = v.safeParse(AttachmentSchema, object);
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no VolumeAttachment`);
  return { object, attachment: toAttachment(result.output) };
}

/** This very object and no other version of it: whatever happened to it in between makes a conflict. */
export async function deleteAttachment(
  api: Api,
  { name, uid, resourceVersion }: Pick<ApiAttachment, "name" | "uid" | "resourceVersion">,
): Promise<void> {
  const preconditions = { uid, resourceVersion };
  await api.delete(pathOf(name), { apiVersion: "v1", kind: "DeleteOptions", preconditions });
}

/** As external-attacher calls the finalizer that it alone puts on and takes off. */
export function attacherFinalizer(attacher: string): string {
  return `external-attacher/${sanitised(attacher)}`;
}

/** As the CSI sidecars make an object's name out of a driver's. */
export function sanitised(driver: string): string {
  const name = driver.replace(/[^a-zA-Z0-9-]/g, "-");
  return name.endsWith("-") ? `${name}X` : name;
}

function pathOf(name: string): string {
  return `${PATH}/${encodeURIComponent(name)}`;
}

function toAttachment({ metadata, spec, status }: v.InferOutput<typeof AttachmentSchema>): ApiAttachment {
  const error = status?.attachError?.message || status?.detachError?.message;
  const volume = spec.source.persistentVolumeName;
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion ?? "",
    attacher: spec.attacher,
    node: spec.nodeName,
    ...(volume ? { volume } : {}),
    attached: status?.attached ?? false,
    createdAt: new Date(metadata.creationTimestamp),
    deleting: Boolean(metadata.deletionTimestamp),
    ...(metadata.deletionTimestamp ? { deletedAt: new Date(metadata.deletionTimestamp) } : {}),
    finalizers: metadata.finalizers ?? [],
    ...(error ? { error } : {}),
  };
}
