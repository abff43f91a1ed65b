/** Branded types for strings that must not be mixed up; each has one constructor function. */
declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** 64 lower-case hex digits, as in containerd and CRI-O. */
export type SandboxId = Branded<"SandboxId">;
export type ContainerId = Branded<"ContainerId">;
export type PodUid = Branded<"PodUid">;

const FULL_ID = /^[0-9a-f]{64}$/;

export function isFullId(text: string): text is SandboxId & ContainerId {
  return FULL_ID.test(text);
}

const FULL_IDS = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g;

/** Every full id in a text, in order. */
export function fullIdsIn(text: string): readonly string[] {
  return text.match(FULL_IDS) ?? [];
}

/** A sandbox id from the runtime, in any format (cri-dockerd and the simulated runtime may differ). */
export function sandboxId(text: string): SandboxId {
  return text as SandboxId;
}

export function containerId(text: string): ContainerId {
  return text as ContainerId;
}

export function podUid(text: string): PodUid {
  return text as PodUid;
}

/** Identity of one pod sandbox in Kubernetes terms. */
export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: PodUid;
  readonly attempt: number;
}

/** A pod as far as it is known: a log line may have only its name. */
export interface NamedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
  readonly attempt?: number;
}

/** By uid if both have one, else by name. */
export function isSamePod(one: NamedPod | undefined, other: NamedPod): boolean {
  if (one === undefined) return false;
  if (one.uid !== undefined && other.uid !== undefined) return one.uid === other.uid;
  return one.namespace === other.namespace && one.name === other.name;
}

/** containerd's reserved name: `<pod>_<namespace>_<uid>_<attempt>`. */
export function sandboxName(pod: PodRef): string {
  return `${pod.name}_${pod.namespace}_${pod.uid}_${pod.attempt}`;
}

/** The reverse of sandboxName. No component may contain an underscore, so splitting is safe. */
export function parseSandboxName(name: string): PodRef | undefined {
  const parts = name.split("_");
  const [pod, namespace, uid, attempt] = parts;
  if (parts.length !== 4 || !pod || !namespace || !uid || !attempt || !/^\d{1,10}$/.test(attempt)) return undefined;
  return { name: pod, namespace, uid: podUid(uid), attempt: Number(attempt) };
}
