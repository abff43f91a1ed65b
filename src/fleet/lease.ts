import * as v from "valibot";
import type { Api } from "../kube/api.ts";
import { KubeError, orKubeError, unlessMissing } from "../kube/errors.ts";

const texts = v.nullish(v.record(v.string(), v.string()));

const LeaseSchema = v.object({
  metadata: v.object({ resourceVersion: v.string(), annotations: texts }),
  spec: v.nullish(
    v.object({
      holderIdentity: v.nullish(v.string()),
      leaseDurationSeconds: v.nullish(v.number()),
      acquireTime: v.nullish(v.string()),
      renewTime: v.nullish(v.string()),
      leaseTransitions: v.nullish(v.number()),
    }),
  ),
});

export interface LeaseRef {
  readonly namespace: string;
  readonly name: string;
}

export interface Lease {
  readonly resourceVersion: string;
  /** Empty without a holder. */
  readonly holder: string;
  readonly durationSeconds: number;
  readonly acquiredAt: string;
  readonly renewedAt: string;
  readonly transitions: number;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface LeaseWish {
  /** Empty to release it. */
  readonly holder: string;
  readonly durationSeconds: number;
  readonly now: Date;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Bypasses the server's cache; returns undefined if it does not exist. */
export async function getLease(api: Api, ref: LeaseRef): Promise<Lease | undefined> {
  const object = await unlessMissing(api.get(`${leasesPath(ref)}/${ref.name}`));
  return object === undefined ? undefined : toLease(object);
}

/** Only on the version that was read; returns undefined on a conflict. */
export async function writeLease(
  api: Api,
  ref: LeaseRef,
  seen: Lease | undefined,
  wish: LeaseWish,
): Promise<Lease | undefined> {
  const body = leaseObject(ref, seen, wish);
  const path = leasesPath(ref);
  const writing = seen === undefined ? api.create(path, body) : api.replace(`${path}/${ref.name}`, body);
  const answer = await orKubeError(writing);
  if (!(answer instanceof KubeError)) return toLease(answer);
  if (answer.kind === "conflict") return undefined;
  throw answer;
}

function leaseObject(ref: LeaseRef, seen: Lease | undefined, wish: LeaseWish): object {
  const { holder, durationSeconds, now, annotations = seen?.annotations ?? {} } = wish;
  const isSameHolder = seen?.holder === holder;
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      ...ref,
      annotations,
      resourceVersion: seen?.resourceVersion,
    },
    spec: {
      // Omitted instead of empty: newer servers refuse an empty name.
      ...(holder === "" ? {} : { holderIdentity: holder }),
      leaseDurationSeconds: durationSeconds,
      acquireTime: isSameHolder && seen.acquiredAt !== "" ? seen.acquiredAt : microTime(now),
      renewTime: microTime(now),
      leaseTransitions: (seen?.transitions ?? 0) + (isSameHolder ? 0 : 1),
    },
  };
}

/** Times of Leases have six fraction digits, and a server refuses any other number. */
function microTime(date: Date): string {
  return date.toISOString().replace("Z", "000Z");
}

function leasesPath({ namespace }: LeaseRef): string {
  return `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
}

function toLease(object: unknown): Lease {
  const result = v.safeParse(LeaseSchema, object);
  if (!result.success) throw new KubeError("unreadable", "the API server's answer is no Lease");
  const { metadata, spec } = result.output;
  return {
    resourceVersion: metadata.resourceVersion,
    holder: spec?.holderIdentity ?? "",
    durationSeconds: spec?.leaseDurationSeconds ?? 0,
    acquiredAt: spec?.acquireTime ?? "",
    renewedAt: spec?.renewTime ?? "",
    transitions: spec?.leaseTransitions ?? 0,
    annotations: metadata.annotations ?? {},
  };
}
