/** What a one-shot pod runs, and where. */
export interface OneShot {
  readonly node: string;
  readonly namespace: string;
  readonly image: string;
  /** Of `unghost`. */
  readonly args: readonly string[];
  readonly deadlineSeconds: number;
}

/** Of a container that has ended: enough to read its log, and removed also if unghost was killed. */
const KEPT_SECONDS = 60;
const GRACE_SECONDS = 30;
/** After which nothing is left of it. */
export function lifetimeOf({ deadlineSeconds }: OneShot): number {
  return deadlineSeconds + GRACE_SECONDS + KEPT_SECONDS;
}

const LABELS = { "app.kubernetes.io/name": "unghost", "app.kubernetes.io/component": "one-shot" };

/**
 * A Job with one pod: the cluster ends it after its deadline and removes it, also if unghost is killed. A pod alone would
 * stay.
 */
export function oneShotJob(shot: OneShot) {
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { generateName: "unghost-", namespace: shot.namespace, labels: LABELS },
    spec: {
      backoffLimit: 0,
      activeDeadlineSeconds: shot.deadlineSeconds,
      ttlSecondsAfterFinished: KEPT_SECONDS,
      template: { metadata: { labels: LABELS }, spec: podSpec(shot) },
    },
  };
}

/** The pod that such a Job creates, for a dry run: the server refuses the pod, and not the Job. */
export function oneShotPod(shot: OneShot) {
  const metadata = { labels: LABELS, generateName: "unghost-", namespace: shot.namespace };
  return { apiVersion: "v1", kind: "Pod", metadata, spec: podSpec(shot) };
}

export function oneShotArgs({ args }: OneShot): readonly string[] {
  return [...args, "--host-root=/host"];
}

/** Like `kubectl debug node --profile=sysadmin`. It needs neither a network plugin, a volume driver nor the scheduler. */
function podSpec(shot: OneShot) {
  const { node, image, deadlineSeconds } = shot;
  return {
    nodeName: node,
    hostNetwork: true,
    hostPID: true,
    dnsPolicy: "Default",
    enableServiceLinks: false,
    // It uses kubelet's own credentials, which the API server limits to this node.
    automountServiceAccountToken: false,
    restartPolicy: "Never",
    activeDeadlineSeconds: deadlineSeconds,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    tolerations: [{ operator: "Exists" }],
    containers: [
      {
        name: "unghost",
        image,
        imagePullPolicy: "IfNotPresent",
        args: oneShotArgs(shot),
        env: [{ name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
        securityContext: { privileged: true, runAsUser: 0, runAsGroup: 0, readOnlyRootFilesystem: true },
        volumeMounts: [{ name: "host", mountPath: "/host", mountPropagation: "HostToContainer" }],
      },
    ],
    volumes: [{ name: "host", hostPath: { path: "/" } }],
  };
}
