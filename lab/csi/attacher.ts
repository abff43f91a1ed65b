import { setTimeout as sleep } from "node:timers/promises";
import { type ApiWriter, openApiWriter } from "./api-writer.ts";
import { callDriver } from "./call-driver.ts";
import { field } from "./messages.ts";

/**
 * A substitute of external-attacher: it renews its lease, lets the driver attach and detach what VolumeAttachments
 * request, and writes the result into their status. It polls instead of watching. Started as `node attacher.ts <driver>
 * <socket> <kubeconfig>`.
 */
const [driver = "", socket = "", kubeconfig = ""] = process.argv.slice(2);
const POLL_MS = 500;
const PAUSE_AFTER_ERROR_MS = 2000;
const STORAGE = "/apis/storage.k8s.io/v1";
const sanitised = driver.replace(/[^a-zA-Z0-9-]/g, "-");
const FINALIZER = `external-attacher/${sanitised}`;

interface Attachment {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
  };
  readonly spec: {
    readonly attacher: string;
    readonly nodeName: string;
    readonly source: { readonly persistentVolumeName?: string };
  };
  readonly status?: { readonly attached?: boolean };
}

interface Volume {
  readonly spec: { readonly csi: { readonly volumeHandle: string } };
}

const api: ApiWriter = openApiWriter(kubeconfig);
/** Attachments whose last attempt failed, by uid, and when the next is due. */
const pauses = new Map<string, number>();

async function renewLease(): Promise<void> {
  const name = `external-attacher-leader-${sanitised}`;
  // Leases have microseconds.
  const renewTime = new Date().toISOString().replace("Z", "000Z");
  await api.apply(`/apis/coordination.k8s.io/v1/namespaces/default/leases/${name}`, {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name, namespace: "default" },
    spec: { holderIdentity: "lab-attacher", leaseDurationSeconds: 15, renewTime },
  });
}

async function reconcile(attachment: Attachment): Promise<void> {
  const { metadata, status } = attachment;
  if ((pauses.get(metadata.uid) ?? 0) > Date.now()) return;
  const path = `${STORAGE}/volumeattachments/${metadata.name}`;
  const finalizers = metadata.finalizers ?? [];
  if (metadata.deletionTimestamp !== undefined) {
    if (!finalizers.includes(FINALIZER)) return;
    const error = await change("ControllerUnpublishVolume", attachment);
    if (error === undefined)
      await api.merge(path, { metadata: { finalizers: finalizers.filter((one) => one !== FINALIZER) } });
    else await api.merge(`${path}/status`, { status: { detachError: error } });
    return;
  }
  if (status?.attached) return;
  if (!finalizers.includes(FINALIZER)) await api.merge(path, { metadata: { finalizers: [...finalizers, FINALIZER] } });
  const error = await change("ControllerPublishVolume", attachment);
  const attached = error === undefined;
  await api.merge(`${path}/status`, { status: { attached, attachError: error ?? null } });
}

async function change(
  method: "ControllerPublishVolume" | "ControllerUnpublishVolume",
  { metadata, spec }: Attachment,
): Promise<{ readonly message: string; readonly time: string } | undefined> {
  const volume = await api.get<Volume>(`/api/v1/persistentvolumes/${spec.source.persistentVolumeName}`);
  const request = Buffer.concat([field(1, volume.spec.csi.volumeHandle), field(2, spec.nodeName)]);
  const message = await callDriver(socket, `/csi.v1.Controller/${method}`, request);
  if (message === undefined) return undefined;
  pauses.set(metadata.uid, Date.now() + PAUSE_AFTER_ERROR_MS);
  return { message, time: `${new Date().toISOString().slice(0, 19)}Z` };
}

for (;;) {
  try {
    await renewLease();
    const { items } = await api.get<{ readonly items: readonly Attachment[] }>(`${STORAGE}/volumeattachments`);
    for (const attachment of items) if (attachment.spec.attacher === driver) await reconcile(attachment);
  } catch (error) {
    console.error(error);
  }
  await sleep(POLL_MS);
}
