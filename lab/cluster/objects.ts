/** The checked parts of Kubernetes objects. */
export interface PodObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
  };
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly containerID?: string;
  readonly state?: {
    readonly running?: object;
    readonly waiting?: { readonly reason?: string };
    readonly terminated?: { readonly exitCode: number };
  };
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

export interface NodeObject {
  readonly status: { readonly conditions?: readonly Condition[] };
}

export function isReady(pod: PodObject): boolean {
  return pod.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

/** In a new container. */
export function runsAgain(pod: PodObject): boolean {
  return isReady(pod) && (pod.status.containerStatuses?.[0]?.restartCount ?? 0) > 0;
}

/** Container ids by pod, to check that pods were not restarted. */
export function containersOf(pods: readonly PodObject[], wanted: readonly string[]): readonly string[] {
  return pods
    .filter(({ metadata }) => wanted.includes(metadata.name))
    .flatMap(
      ({ metadata, status }) => status.containerStatuses?.map((one) => `${metadata.name} ${one.containerID}`) ?? [],
    )
    .toSorted();
}

export function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

/** Pods of the lab's image that print their name and run until they are stopped. */
export function podObjects(podNames: readonly string[], nodeName: string): readonly object[] {
  return podNames.map((name) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: "main",
          image: "unghost.lab/pause:1",
          imagePullPolicy: "Never",
          command: ["sh", "-c", `echo "${name} says hello"; exec sleep 1000000000`],
        },
      ],
    },
  }));
}
