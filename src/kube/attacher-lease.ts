import * as v from "valibot";
import type { Api } from "./api.ts";
import type { AttacherLease } from "./cluster-facts.ts";
import { listAll } from "./list.ts";
import { sanitised } from "./volume-attachments.ts";

const LeaseSchema = v.object({
  metadata: v.object({ name: v.string(), namespace: v.string() }),
  spec: v.nullish(
    v.object({
      holderIdentity: v.nullish(v.string()),
      leaseDurationSeconds: v.nullish(v.number()),
      renewTime: v.nullish(v.string()),
    }),
  ),
});

/** Undefined when the attacher holds no lease: it runs without leader election, or not at all. */
export async function attacherLease(api: Api, attacher: string): Promise<AttacherLease | undefined> {
  const name = `external-attacher-leader-${sanitised(attacher)}`;
  const query = { fieldSelector: `metadata.name=${name}` };
  const leases = await listAll(api, { path: "/apis/coordination.k8s.io/v1/leases", query, item: LeaseSchema });
  const held = leases.flatMap(({ metadata, spec }) => {
    // A holder that shuts down orderly releases its lease by clearing the name.
    if (metadata.name !== name || !spec?.holderIdentity || !spec.renewTime) return [];
    return [
      {
        name: `${metadata.namespace}/${metadata.name}`,
        holder: spec.holderIdentity,
        durationSeconds: spec.leaseDurationSeconds ?? 15,
        renewedAt: new Date(spec.renewTime),
      },
    ];
  });
  return held.toSorted((one, other) => other.renewedAt.getTime() - one.renewedAt.getTime())[0];
}
