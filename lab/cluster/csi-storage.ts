import { join } from "node:path";
import { PAUSE_IMAGE } from "../pause-image.ts";

export const DRIVER = "lab.csi.unghost.dev";
export const DIR = `/var/lib/kubelet/plugins/${DRIVER}`;
export const DRIVER_SOCKET = `${DIR}/csi.sock`;
export const REGISTRATION = `/var/lib/kubelet/plugins_registry/${DRIVER}-reg.sock`;
export const PROGRAM = join(import.meta.dirname, "../csi/driver.ts");
const SIDECAR = join(import.meta.dirname, "../csi/sidecar.ts");

/** Runs a program of the node in a container, because the lab's image contains only busybox. */
function onNode(name: string, command: readonly string[]): object {
  return {
    name,
    image: PAUSE_IMAGE,
    imagePullPolicy: "Never",
    command: ["/bin/busybox", "chroot", "/node", process.execPath, ...command],
    volumeMounts: [{ name: "node", mountPath: "/node" }],
  };
}

const NODE = { name: "node", hostPath: { path: "/" } };
const SOCKET = { name: "socket", hostPath: { path: DIR, type: "DirectoryOrCreate" } };

function replicaSet(name: string, nodeName: string, spec: object): object {
  const labels = { app: name };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name, namespace: "default" },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { nodeName, terminationGracePeriodSeconds: 1, ...spec } },
    },
  };
}

/** The driver as it is installed: its CSIDriver and its node plugin. */
export function driverObjects(nodeName: string): readonly object[] {
  return [
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: { name: DRIVER },
      spec: { attachRequired: false, volumeLifecycleModes: ["Persistent", "Ephemeral"] },
    },
    // Alphabetically after its sidecar: the order of healing must not depend on the name.
    replicaSet("zz-node-plugin", nodeName, {
      containers: [onNode("driver", [PROGRAM, DRIVER, nodeName, DRIVER_SOCKET, REGISTRATION])],
      volumes: [
        NODE,
        SOCKET,
        { name: "registration", hostPath: { path: "/var/lib/kubelet/plugins_registry", type: "DirectoryOrCreate" } },
      ],
    }),
  ];
}

/** Sidecars of the driver in separate pods. */
export function sidecarObjects(nodeName: string, names: readonly string[] = ["csi-sidecar"]): readonly object[] {
  return names.map((name) =>
    replicaSet(name, nodeName, { containers: [onNode("sidecar", [SIDECAR, DRIVER_SOCKET])], volumes: [NODE, SOCKET] }),
  );
}

/** A claim and the PersistentVolume that it is bound to. */
export function volumeObjects(name: string, volumeHandle: string): readonly object[] {
  const capacity = { storage: "1Mi" };
  return [
    {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: `pv-${name}` },
      spec: {
        capacity,
        accessModes: ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Retain",
        storageClassName: "",
        claimRef: { namespace: "default", name },
        csi: { driver: DRIVER, volumeHandle },
      },
    },
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name, namespace: "default" },
      spec: {
        accessModes: ["ReadWriteOnce"],
        storageClassName: "",
        volumeName: `pv-${name}`,
        resources: { requests: capacity },
      },
    },
  ];
}

/** The pod spec for a shell script with a claim mounted at /data. */
export function specWithVolume(claimName: string, script: string): object {
  return {
    containers: [
      {
        name: "main",
        image: PAUSE_IMAGE,
        imagePullPolicy: "Never",
        command: ["sh", "-c", script],
        volumeMounts: [{ name: "data", mountPath: "/data" }],
      },
    ],
    volumes: [{ name: "data", persistentVolumeClaim: { claimName } }],
  };
}

/** A claim with its volume, and a pod that mounts it. */
export function databaseObjects(nodeName: string): readonly object[] {
  return [
    ...volumeObjects("database", "vol-database"),
    replicaSet("database", nodeName, specWithVolume("database", "cat /data/volume; exec sleep 1000000000")),
  ];
}

/** A pod with a volume of its own, which is made with the pod. */
export function scratchObjects(nodeName: string): readonly object[] {
  const volumes = [{ name: "data", csi: { driver: DRIVER } }];
  return [replicaSet("scratch", nodeName, { ...specWithVolume("", "exec sleep 1000000000"), volumes })];
}
