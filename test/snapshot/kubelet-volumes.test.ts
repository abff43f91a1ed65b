import { mkdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readKubeletVolumes } from "../../src/snapshot/kubelet-volumes.ts";
import { fill, tempDir } from "./temp-dir.ts";

const KUBELET = "/data/kubelet";
const DATA = JSON.stringify({
  driverName: "driver.example",
  volumeHandle: "vol-1",
  specVolID: "pv-1",
  attachmentID: "csi-1",
  nodeName: "n1",
  volumeLifecycleMode: "Persistent",
});

function node(files: Readonly<Record<string, string>>): string {
  const root = tempDir();
  mkdirSync(`${root}${KUBELET}`, { recursive: true });
  return fill(root, Object.fromEntries(Object.entries(files).map(([path, text]) => [`${KUBELET}/${path}`, text])));
}

describe("kubelet's records of CSI volumes", () => {
  test("are read for published, staged (old and new kubelets), block and subPath volumes", () => {
    const root = node({
      "pods/u1/volumes/kubernetes.io~csi/pv-1/vol_data.json": DATA,
      "pods/u1/volumes/kubernetes.io~configmap/config/file": "",
      "pods/u2/volumeDevices/kubernetes.io~csi/pv-2": "",
      "pods/u3/volume-subpaths/pv-3/main/0": "",
      "plugins/kubernetes.io/csi/pv/pv-4/vol_data.json": DATA,
      "plugins/kubernetes.io/csi/driver.example/abc/vol_data.json": DATA,
      "plugins/kubernetes.io/csi/volumeDevices/staging/pv-5/x": "",
      "plugins/kubernetes.io/csi/volumeDevices/publish/pv-6/u4": "",
      "plugins/kubernetes.io/csi/volumeDevices/pv-7/data/vol_data.json": DATA,
    });

    const source = readKubeletVolumes(root, KUBELET);

    if (source.status !== "read") throw new Error(source.status);
    const data = { driver: "driver.example", handle: "vol-1", specName: "pv-1", attachment: "csi-1" };
    expect(new Map(source.value.map((record) => [record.name, record]))).toEqual(
      new Map([
        ["pv-1", { path: `${KUBELET}/pods/u1/volumes/kubernetes.io~csi/pv-1`, name: "pv-1", podUid: "u1", data }],
        ["pv-2", { path: `${KUBELET}/pods/u2/volumeDevices/kubernetes.io~csi/pv-2`, name: "pv-2", podUid: "u2" }],
        ["pv-3", { path: `${KUBELET}/pods/u3/volume-subpaths/pv-3`, name: "pv-3", podUid: "u3" }],
        ["pv-4", { path: `${KUBELET}/plugins/kubernetes.io/csi/pv/pv-4`, name: "pv-4", data }],
        ["abc", { path: `${KUBELET}/plugins/kubernetes.io/csi/driver.example/abc`, name: "abc", data }],
        ["pv-5", { path: `${KUBELET}/plugins/kubernetes.io/csi/volumeDevices/staging/pv-5`, name: "pv-5" }],
        ["pv-6", { path: `${KUBELET}/plugins/kubernetes.io/csi/volumeDevices/publish/pv-6`, name: "pv-6" }],
        ["pv-7", { path: `${KUBELET}/plugins/kubernetes.io/csi/volumeDevices/pv-7`, name: "pv-7", data }],
      ]),
    );
  });

  test("are empty before kubelet has run a pod", () => {
    expect(readKubeletVolumes(node({}), KUBELET)).toMatchObject({ status: "read", value: [] });
  });

  test.each<readonly [string, Readonly<Record<string, string>>]>([
    ["a record is torn", { "pods/u1/volumes/kubernetes.io~csi/pv-1/vol_data.json": '{"driverName":' }],
    ["a record is a directory", { "pods/u1/volumes/kubernetes.io~csi/pv-1/vol_data.json/x": "" }],
    ["a directory is a file", { "pods/u1/volumes/kubernetes.io~csi": "" }],
  ])("fail as a whole when %s", (_, files) => {
    expect(readKubeletVolumes(node(files), KUBELET).status).toBe("failed");
  });

  test("fail when the directory is missing", () => {
    expect(readKubeletVolumes(tempDir(), KUBELET).status).toBe("failed");
  });
});
