import { useMultusWith } from "../multus.ts";
import {
  DAEMON_BINARY,
  DAEMON_CONF,
  killMultusDaemon,
  type MultusApi,
  untilMultusAnswers,
  useThickMultus,
} from "../multus-thick.ts";
import type { MultusVersion } from "../runtimes.ts";
import type { Cluster } from "./cluster.ts";
import { kubeconfig } from "./kubeconfig.ts";
import { API_SERVER_PORT, CONTROL_PLANE_IP } from "./network.ts";

const NAMESPACE = "kube-system";
const NAME = "multus";

/**
 * Thick multus on every node, with the ServiceAccount and rights of its upstream manifest. Call it before the first
 * pod, because the bridge gets other addresses. Returns the argument of startThickMultus() after a boot.
 */
export async function useThickMultusIn(cluster: Cluster, version?: MultusVersion): Promise<MultusApi> {
  const token = await admitMultus(cluster);
  const { authority } = cluster.controlPlane;
  const api = { host: CONTROL_PLANE_IP, port: API_SERVER_PORT, authority: authority.cert, token };
  for (const node of cluster.nodes) await useThickMultus(node.lab, version, api);
  return api;
}

const DAEMON_POD = "kube-multus";
const DAEMON_POD_CONF = "/opt/multus/daemon-config.json";

/**
 * Runs the daemon of thick multus as a pod of the cluster, like upstream's manifest, instead of a plain process:
 * kubelet restarts it when it ends.
 */
export async function runMultusDaemonAsPod(cluster: Cluster): Promise<void> {
  const { node } = cluster;
  await killMultusDaemon(node.lab);
  // At its start the daemon removes the directory of its socket, which must not be a mount.
  await node.lab.writeFile(DAEMON_POD_CONF, JSON.stringify({ ...DAEMON_CONF, socketDir: "/host/run/multus/" }));
  await cluster.apply([daemonPod(node.name)]);
  await untilMultusAnswers(node.lab);
}

function daemonPod(nodeName: string): object {
  const hostPaths = ["/etc/cni/net.d", "/opt", "/var/lib/cni"];
  const volumes = [
    { name: "root", path: "/", mountPath: "/hostroot", mountPropagation: "HostToContainer" },
    { name: "run", path: "/run", mountPath: "/host/run", mountPropagation: "HostToContainer" },
    { name: "netns", path: "/run/netns", mountPath: "/var/run/netns", mountPropagation: "HostToContainer" },
    ...hostPaths.map((path, index) => ({ name: `host-${index}`, path, mountPath: path })),
  ];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: DAEMON_POD, namespace: NAMESPACE },
    spec: {
      nodeName,
      hostNetwork: true,
      hostPID: true,
      serviceAccountName: NAME,
      terminationGracePeriodSeconds: 10,
      tolerations: [{ operator: "Exists" }],
      volumes: volumes.map(({ name, path }) => ({ name, hostPath: { path } })),
      containers: [
        {
          name: "kube-multus",
          image: "unghost.lab/pause:1",
          imagePullPolicy: "Never",
          command: [DAEMON_BINARY, "-config", DAEMON_POD_CONF],
          securityContext: { privileged: true },
          env: [
            // The lab's image has no /etc/passwd from which the daemon could get its user name.
            { name: "USER", value: "root" },
            { name: "HOME", value: "/root" },
            { name: "KUBERNETES_SERVICE_HOST", value: CONTROL_PLANE_IP },
            { name: "KUBERNETES_SERVICE_PORT", value: String(API_SERVER_PORT) },
            { name: "MULTUS_NODE_NAME", value: nodeName },
          ],
          volumeMounts: volumes.map(({ path: _path, ...mount }) => mount),
        },
      ],
    },
  };
}

const KUBECONFIG = "/etc/cni/net.d/multus.d/multus.kubeconfig";

/** Thin multus on every node. It survives a boot, because it consists of files only. */
export async function useThinMultusIn(cluster: Cluster, version?: MultusVersion): Promise<void> {
  const token = await admitMultus(cluster);
  const { server, authority } = cluster.controlPlane;
  for (const { lab } of cluster.nodes) {
    await lab.writeFile(KUBECONFIG, kubeconfig(server, authority.cert, { token }), 0o600);
    await useMultusWith(KUBECONFIG, lab, version);
  }
}

/** Returns a token of multus' ServiceAccount. */
async function admitMultus(cluster: Cluster): Promise<string> {
  await cluster.apply(MANIFESTS);
  await cluster.kubectl("wait", "--for=condition=Established", `crd/${CRD_NAME}`, "--timeout=60s");
  const token = await cluster.kubectl("create", "token", NAME, `--namespace=${NAMESPACE}`, "--duration=12h");
  return token.trim();
}

const CRD_NAME = "network-attachment-definitions.k8s.cni.cncf.io";

const MANIFESTS = [
  {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: CRD_NAME },
    spec: {
      group: "k8s.cni.cncf.io",
      scope: "Namespaced",
      names: {
        plural: "network-attachment-definitions",
        singular: "network-attachment-definition",
        kind: "NetworkAttachmentDefinition",
      },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  },
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: NAME, namespace: NAMESPACE } },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: NAME },
    rules: [
      { apiGroups: ["k8s.cni.cncf.io"], resources: ["*"], verbs: ["*"] },
      { apiGroups: [""], resources: ["pods", "pods/status"], verbs: ["get", "list", "watch", "update"] },
      { apiGroups: ["", "events.k8s.io"], resources: ["events"], verbs: ["create", "patch", "update"] },
    ],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: NAME },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: NAME },
    subjects: [{ kind: "ServiceAccount", name: NAME, namespace: NAMESPACE }],
  },
];
