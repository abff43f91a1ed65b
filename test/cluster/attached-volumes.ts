import type { Cluster } from "../../lab/cluster/cluster.ts";
import { DRIVER, specWithVolume } from "../../lab/cluster/csi-storage.ts";
import { until } from "../../lab/poll.ts";
import { WAIT_MS } from "./lab-cluster.ts";

export const BY_NAME = ["--only", "volume-attachment-stuck", "--volume-attachment-age", "1s"] as const;

export interface AttachmentObject {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly source: { readonly persistentVolumeName?: string } };
  readonly status?: { readonly attached?: boolean; readonly attachError?: { readonly message?: string } };
}

export async function attachments({ api }: Cluster): Promise<readonly AttachmentObject[]> {
  const path = "/apis/storage.k8s.io/v1/volumeattachments";
  return (await api.get<{ readonly items: readonly AttachmentObject[] }>(path)).items;
}

/** Waits until the PersistentVolume has a matching attachment. */
export function attachmentOf(
  story: Cluster,
  volume: string,
  isIt: (attachment: AttachmentObject) => boolean,
): Promise<AttachmentObject> {
  return until(`the attachment of ${volume} is as asked`, WAIT_MS, async () =>
    (await attachments(story)).find((one) => one.spec.source.persistentVolumeName === volume && isIt(one)),
  );
}

export async function driverRegistered({ api, node }: Cluster): Promise<void> {
  const path = `/apis/storage.k8s.io/v1/csinodes/${node.name}`;
  await until("the driver is registered", WAIT_MS, async () => {
    const { spec } = await api.get<{ readonly spec: { readonly drivers?: readonly { readonly name: string }[] } }>(
      path,
    );
    return spec.drivers?.some(({ name }) => name === DRIVER) ? true : undefined;
  });
}

export function podWith(name: string, nodeName: string, claim: string, script: string): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: { nodeName, restartPolicy: "Never", terminationGracePeriodSeconds: 1, ...specWithVolume(claim, script) },
  };
}
