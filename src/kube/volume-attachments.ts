import * as v from "valibot";
import type { Api } from "./api.ts";
import type { ApiAttachment } from "./cluster-facts.ts";
import { KubeError, unlessMissing } from "./kube-error.ts";
import { type Page, pagesOf } from "./list.ts";

const PATH = "/apis/storage.k8s.io/v1/volumeattachments";

const failure = v.nullish(v.object({ message: v.nullish(v.string()), time: v.nullish(v.string()) }));

const AttachmentSchema = v.object({
  metadata: v.object({
    name: v.string(),
    uid: v.string(),
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

/** All of the cluster page by page, bypassing the server's cache: the API has no selector except for the name. */
export async function* attachmentPages(api: Api): AsyncGenerator<Page<ApiAttachment>> {
  for await (const page of pagesOf(api, { path: PATH, item: AttachmentSchema, fresh: true }))
    yield { ...page, items: page.items.map(toAttachment) };
}

/** The name that the attach/detach controller and kubelet give to an attachment. */
export function attachmentName(handle: string, driver: string, node: string): string {
  // A static import would cost 2 ms at every start.
  const { createHash } = process.getBuiltinModule("node:crypto");
  return `csi-${createHash("sha256").update(`${handle}${driver}${node}`).digest("hex")}`;
}

/** Undefined if it does not exist. */
export async function getAttachment(api: Api, name: string): Promise<ApiAttachment | undefined> {
  const path = pathOf(name);
  const object = await unlessMissing(api.get(path));
  if (object === undefined) return undefined;
  const result = v.safeParse(AttachmentSchema, object);
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no VolumeAttachment`);
  return toAttachment(result.output);
}

/** How the CSI sidecars derive an object's name from a driver's name. */
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
