import { readFileSync, rmSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { AGENT_LOG, agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import { type AttachingDriver, startAttachingDriver } from "../../lab/cluster/csi-attacher.ts";
import { DRIVER, volumeObjects } from "../../lab/cluster/csi-storage.ts";
import { isReady } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import { reportOf } from "../e2e/unghost.ts";
import { attachmentOf, attachments, BY_NAME, driverRegistered, HEALING_AGENT, podWith } from "./attached-volumes.ts";
import { cluster, HANG_GUARD_MS, unghostOn, WAIT_MS } from "./lab-cluster.ts";

const HANDLE = "vol-shared-7";
const WRITE = "while :; do date >>/data/log; sleep 0.2; done";
const ERROR = "the storage does not answer";

test(
  "an attachment stays when a pod uses another PersistentVolume with the same handle",
  async () => {
    const { story, driver } = await clusterWithDriver();
    const { node } = story;
    await story.apply([...volumeObjects("first", HANDLE), podWith("ends", node.name, "first", WAIT_FOR_END)]);
    await story.waitForPods(1, isReady);
    await story.apply([...volumeObjects("twin", HANDLE), podWith("on-twin", node.name, "twin", WRITE)]);
    await story.waitForPods(2, isReady);
    await node.lab.writeFile(`${driver.contentOf(HANDLE)}/end`, "");
    await until("the first pod has ended", WAIT_MS, async () =>
      (await story.pods()).some(({ status }) => status.phase === "Succeeded") ? true : undefined,
    );
    await attachmentFails(story, driver);

    await expectKept(story, driver, { code: "pod-uses-volume", message: "default/on-twin on this node uses" });
  },
  HANG_GUARD_MS,
);

test(
  "an attachment stays while a container keeps a mount that was detached from the node",
  async () => {
    const { story, driver } = await clusterWithDriver();
    const { node } = story;
    await story.apply([...volumeObjects("first", HANDLE), podWith("writer", node.name, "first", WRITE)]);
    const [writer] = await story.waitForPods(1, isReady);
    await attachmentFails(story, driver);
    const dir = `/var/lib/kubelet/pods/${writer?.metadata.uid}/volumes/kubernetes.io~csi/pv-first`;
    await node.kubelet.end("KILL");
    await node.lab.check(["umount", "-l", `${dir}/mount`]);

    // Removes one source after the other, until only the container itself shows the use.
    expect(await healingRefused(story)).toBe("pod-uses-volume");
    await story.kubectl("delete", "pod", "writer", "--force", "--grace-period=0");
    expect(await healingRefused(story)).toBe("kubelet-has-record");
    for (const records of [dir, `/var/lib/kubelet/plugins/kubernetes.io/csi/${DRIVER}`])
      rmSync(node.lab.livePath(records), { recursive: true });
    await expectKept(story, driver, { code: "mounted", message: "the volume is mounted here" });
  },
  HANG_GUARD_MS,
);

const WAIT_FOR_END = "until [ -e /data/end ]; do sleep 0.2; done";

async function clusterWithDriver(): Promise<{ readonly story: Cluster; readonly driver: AttachingDriver }> {
  const story = await cluster();
  const driver = await startAttachingDriver(story);
  await driverRegistered(story);
  return { story, driver };
}

/** Like external-attacher's reconciler for a volume that the storage does not list as attached. */
async function attachmentFails(story: Cluster, driver: AttachingDriver): Promise<void> {
  const { metadata } = await attachmentOf(story, "pv-first", ({ status }) => status?.attached === true);
  await driver.refuse(ERROR);
  const patch = JSON.stringify({ status: { attached: false } });
  await story.kubectl(
    "patch",
    "volumeattachment",
    metadata.name,
    "--subresource=status",
    "--type=merge",
    `-p=${patch}`,
  );
  await attachmentOf(story, "pv-first", ({ status }) => status?.attachError?.message?.includes(ERROR) === true);
}

async function healingRefused({ node }: Cluster): Promise<string | undefined> {
  const { actions = [] } = reportOf(await unghostOn(node, "heal", "--yes", "-o", "json", ...BY_NAME));
  expect(actions).toMatchObject([{ action: "delete-volume-attachment", outcome: "refused" }]);
  return actions[0]?.code;
}

/** Neither an explicit heal nor the agent deletes it, and the container continues to write. */
async function expectKept(
  story: Cluster,
  driver: AttachingDriver,
  { code, message }: { readonly code: string; readonly message: string },
): Promise<void> {
  const { node } = story;
  const before = await attachments(story);
  expect(await healingRefused(story)).toBe(code);

  const agent = await agentOn(node, HEALING_AGENT);
  await agent.start();
  await until("the agent was refused", WAIT_MS, () =>
    readFileSync(node.lab.livePath(AGENT_LOG), "utf8").includes(message) ? true : undefined,
  );

  expect((await attachments(story)).map(({ metadata }) => metadata)).toMatchObject(
    before.map(({ metadata: { name, uid } }) => ({ name, uid })),
  );
  expect((await attachments(story)).filter(({ metadata }) => metadata.deletionTimestamp)).toEqual([]);
  expect(driver.calls()).toEqual([`attach ${HANDLE} ${node.name}`]);
  const log = node.lab.livePath(`${driver.contentOf(HANDLE)}/log`);
  const { size } = statSync(log);
  await until("the container writes on", WAIT_MS, () => (statSync(log).size > size ? true : undefined));
}
