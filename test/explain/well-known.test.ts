import { describe, expect, test } from "vitest";
import { type Group, grouper } from "../../src/diagnose/explain/group.ts";
import { answersIn } from "../../src/diagnose/explain/lines.ts";
import { renderAnswers } from "../../src/report/explain-answers.ts";

/** What people search for in their first weeks with a cluster, as terminals show it: [the topic, the text]. */
const WELL_KNOWN: readonly (readonly [string, string])[] = [
  [
    "image-pull",
    '  Normal   BackOff    14s (x4 over 78s)  kubelet            Back-off pulling image "shop/cart:2.1.0"',
  ],
  [
    "image-pull",
    "NAME                    READY   STATUS             RESTARTS   AGE\ncart-7d9f8c6b5c-x2x4z   0/1     ImagePullBackOff   0          4m",
  ],
  [
    "image-pull",
    '  Warning  Failed  9s  kubelet  Failed to pull image "shop/cart:2.1": rpc error: code = Unknown desc = failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized',
  ],
  ["crash-loop", "cart-7d9f8c6b5c-x2x4z   0/1     CrashLoopBackOff   12 (3m ago)   41m"],
  [
    "crash-loop",
    "    State:          Waiting\n      Reason:       CrashLoopBackOff\n    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    1",
  ],
  ["oom", "cart-7d9f8c6b5c-x2x4z   0/1     OOMKilled   3 (31s ago)   2m"],
  ["exit-137", "command terminated with exit code 137"],
  [
    "scheduling",
    "  Warning  FailedScheduling  3m  default-scheduler  0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector.",
  ],
  ["scheduling", "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."],
  [
    "plugin-ended",
    'failed to destroy network for sandbox "7c1f": plugin type="bridge" failed (delete): netplugin failed with no error message: signal: terminated',
  ],
  ["pod-state-row", "cart-7d9f8c6b5c-x2x4z   0/1     Pending   0          12m"],
  [
    "sandbox-row",
    "POD ID              CREATED             STATE               NAME                NAMESPACE           ATTEMPT\n7c1f0e5ab2d94       3 weeks ago         NotReady            web-0               shop                0",
  ],
  [
    "image-pull",
    '  Warning  InspectFailed  8s  kubelet  Failed to apply default image tag "Cart:2": couldn\'t parse image name "Cart:2": invalid reference format',
  ],
  [
    "oom",
    "kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-4afc,task=java,pid=42211,uid=1000",
  ],
  ["dns", "[ERROR] plugin/errors: 2 cart.shop.example. A: read udp 10.42.0.8:52118->10.0.0.2:53: i/o timeout"],
  ["pod-state-row", "cart-7d9f8c6b5c-x2x4z   1/1     Terminating   0          3d2h"],
  [
    "quota",
    'Error from server (Forbidden): error when creating "pod.yaml": pods "cart" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10',
  ],
  [
    "webhook",
    'Error from server (InternalError): error when creating "ing.yaml": Internal error occurred: failed calling webhook "validate.nginx.ingress.kubernetes.io": failed to call webhook: Post "https://ingress-nginx-controller-admission.ingress-nginx.svc:443/networking/v1/ingresses?timeout=10s": context deadline exceeded',
  ],
  ["dns", "nslookup: can't resolve 'kubernetes.default'"],
  ["dns", ";; connection timed out; no servers could be reached"],
  ["dns", "Error: getaddrinfo EAI_AGAIN db.prod.svc.cluster.local"],
  [
    "eviction",
    "  MemoryPressure   True    Tue, 03 Mar 2026 10:00:00 +0100   Tue, 03 Mar 2026 09:58:00 +0100   KubeletHasInsufficientMemory   kubelet has insufficient memory available",
  ],
  [
    "eviction",
    "  DiskPressure     True    Tue, 03 Mar 2026 10:00:00 +0100   Tue, 03 Mar 2026 09:58:00 +0100   KubeletHasDiskPressure   kubelet has disk pressure",
  ],
  ["eviction", "The node had condition: [DiskPressure]."],
  [
    "cgroup-driver",
    'Mar 03 09:12:44 n1 kubelet[811]: E0303 09:12:44.101010     811 run.go:74] "command failed" err="failed to run Kubelet: misconfiguration: kubelet cgroup driver: \\"systemd\\" is different from docker cgroup driver: \\"cgroupfs\\""',
  ],
  [
    "kubelet-not-configured",
    'Mar 03 09:12:44 n1 kubelet[811]: E0303 09:12:44.101010     811 run.go:72] "command failed" err="failed to load kubelet config file, path: /var/lib/kubelet/config.yaml, error: open /var/lib/kubelet/config.yaml: no such file or directory"',
  ],
  [
    "kubelet-not-configured",
    "[kubelet-check] The HTTP call equal to 'curl -sSL http://localhost:10248/healthz' failed with error: Get \"http://localhost:10248/healthz\": dial tcp 127.0.0.1:10248: connect: connection refused.",
  ],
  [
    "certificates",
    'Unable to connect to the server: x509: certificate signed by unknown authority (possibly because of "crypto/rsa: verification error" while trying to verify candidate authority certificate "kubernetes")',
  ],
  [
    "api-server",
    'E0303 09:12:44.101010     811 reflector.go:147] vendor/k8s.io/client-go/informers/factory.go:150: Failed to watch *v1.Node: failed to list *v1.Node: Get "https://10.0.0.5:6443/api/v1/nodes": dial tcp 10.0.0.5:6443: connect: connection refused',
  ],
  ["api-server", "The connection to the server localhost:8080 was refused - did you specify the right host or port?"],
  ["open-files", "Error: error creating watcher: too many open files"],
  ["gpu-runtime", 'could not select device driver "nvidia" with capabilities: [[gpu]]'],
  [
    "gpu-runtime",
    "Error: failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy' nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
  ],
  [
    "run-as-root",
    'Error: container has runAsNonRoot and image will run as root (pod: "cart_prod(27d74948-6244-4fdb-8f91-524d1d18e6a8)", container: cart)',
  ],
  ["missing-object", "Error: couldn't find key DB_PASSWORD in Secret prod/cart"],
  [
    "missing-object",
    '  Warning  FailedMount  2s (x5 over 10s)  kubelet  MountVolume.SetUp failed for volume "config" : configmap "cart-config" not found',
  ],
  ["provisioning", "pod has unbound immediate PersistentVolumeClaims"],
  [
    "cri-disabled",
    '[ERROR CRI]: container runtime is not running: output: time="2026-03-03T09:12:44Z" level=fatal msg="validate service connection: CRI v1 runtime API is not implemented for endpoint \\"unix:///var/run/containerd/containerd.sock\\": rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService"',
  ],
  [
    "kernel-settings",
    "[ERROR FileContent--proc-sys-net-bridge-bridge-nf-call-iptables]: /proc/sys/net/bridge/bridge-nf-call-iptables does not exist",
  ],
  ["swap", "[ERROR Swap]: running with swap on is not supported. Please disable swap"],
  [
    "join",
    'error execution phase preflight: couldn\'t validate the identity of the API Server: Get "https://10.0.0.5:6443/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s": context deadline exceeded',
  ],
  ["permissions", "error: You must be logged in to the server (Unauthorized)"],
  ["no-such-object", 'Error from server (NotFound): pods "cart" not found'],
  [
    "not-running-yet",
    'Error from server (BadRequest): container "cart" in pod "cart-7d9f8c6b5c-x2x4z" is waiting to start: ContainerCreating',
  ],
  [
    "kubelet-unreachable",
    "Error from server: error dialing backend: dial tcp 10.0.0.7:10250: connect: no route to host",
  ],
  ["node-not-ready", "  Warning  NodeNotReady  2m  node-controller  Node is not ready"],
  [
    "probe",
    "  Warning  Unhealthy  4s (x3 over 24s)  kubelet  Readiness probe failed: HTTP probe failed with statuscode: 503",
  ],
  ["container-command", "exec /usr/local/bin/cart: exec format error"],
  [
    "apparmor",
    'Error: failed to create containerd container: get apparmor_parser version: exec: "apparmor_parser": executable file not found in $PATH',
  ],
  [
    "unknown-kind",
    'error: unable to recognize "deploy.yaml": no matches for kind "Deployment" in version "extensions/v1beta1"',
  ],
  ["rollout", 'error: deployment "cart" exceeded its progress deadline'],
  ["conntrack-full", "[88123.112233] nf_conntrack: nf_conntrack: table full, dropping packet"],
  [
    "metrics",
    "  Warning  FailedGetResourceMetric  5s  horizontal-pod-autoscaler  failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API",
  ],
];

/** Lines of this kind that are a class or a failing operation of this field all the same. */
const OURS: readonly (readonly [string, string])[] = [
  [
    "class cni-not-initialized",
    "runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:docker: network plugin is not ready: cni config uninitialized",
  ],
  ["class inotify-instances-exhausted", "failed to create fsnotify watcher: too many open files"],
  [
    "failure list",
    'Mar 03 09:12:44 n1 kubelet[811]: E0303 09:12:44.101010     811 kubelet.go:2451] "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 3m12s ago; threshold is 3m0s"',
  ],
];

/** What these texts show may have a ghost as its cause: the answer does not deny it. */
const SYMPTOMS: ReadonlySet<string> = new Set([
  "plugin-ended",
  "pod-state-row",
  "sandbox-row",
  "not-running-yet",
  "node-not-ready",
  "rollout",
]);

function groupsIn(text: string): readonly Group[] {
  const counted = grouper();
  for (const answer of answersIn(text)) counted.add(answer);
  return counted.groups();
}

describe("an error that has nothing to do with ghosts", () => {
  test.each(WELL_KNOWN)("%s: %s", (topic, text) => {
    const groups = groupsIn(text);

    expect(groups.map((group) => (group.kind === "topic" ? group.topic.id : group))).toEqual([topic]);
    const shown = renderAnswers(groups, { width: 80, colour: false, verbose: false });
    expect(shown.replaceAll(/\s+/gu, " ").includes("This is no ghost.")).toBe(!SYMPTOMS.has(topic));
    expect(Math.max(...shown.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  test("names at least forty of them", () => {
    expect(new Set(WELL_KNOWN.map(([, text]) => text)).size).toBeGreaterThanOrEqual(40);
  });

  test.each(OURS)("is not the answer where this is %s", (expected, text) => {
    const named = groupsIn(text).map((group) => {
      if (group.kind === "class") return `class ${group.class}`;
      return group.kind === "topic" ? `topic ${group.topic.id}` : `failure ${group.failure.operation}`;
    });

    expect(named).toEqual([expected]);
  });
});
