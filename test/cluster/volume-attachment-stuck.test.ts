import { expect, test } from "vitest";
import { startAttachingDriver } from "../../lab/cluster/csi-attacher.ts";
import { volumeObjects } from "../../lab/cluster/csi-storage.ts";
import { isReady } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import { reportOf } from "../e2e/unghost.ts";
import { attachmentOf, attachments, BY_NAME, driverRegistered, podWith } from "./attached-volumes.ts";
import { cluster, HANG_GUARD_MS, scanOn, unghostOn, WAIT_MS } from "./lab-cluster.ts";

const HANDLE = "vol-7";
const ERROR = "the storage does not answer";
const SLEEP = "exec sleep 1000000000";

test(
  "an attachment that cannot be detached while its attacher is down is a finding until it is detached",
  async () => {
    const story = await cluster();
    const { node } = story;
    const driver = await startAttachingDriver(story);
    await driverRegistered(story);
    await story.apply([...volumeObjects("data", HANDLE), podWith("db", node.name, "data", SLEEP)]);
    await story.waitForPods(1, isReady);
    await driver.attacher.end("KILL");

    await story.kubectl("delete", "pod", "db");
    const { metadata } = await attachmentOf(story, "pv-data", (one) => one.metadata.deletionTimestamp !== undefined);
    const report = await until("the deletion is old enough", WAIT_MS, async () => {
      const seen = await scanOn(node, ...BY_NAME);
      return seen.findings.length > 0 ? seen : undefined;
    });
    expect(report).toMatchObject({
      verdict: "ghosts",
      findings: [
        {
          id: `volume-attachment-stuck/${metadata.name}`,
          summary: expect.stringMatching(
            /^pv-data is still attached to this node .* after its attachment was deleted$/,
          ),
        },
      ],
    });
    const { actions } = reportOf(await unghostOn(node, "heal", "--yes", "-o", "json", ...BY_NAME));
    expect(actions).toMatchObject([{ action: "none", outcome: "skipped" }]);
    expect(driver.calls()).toEqual([`attach ${HANDLE} ${node.name}`]);

    await driver.attacher.start();
    await until("the attachment is gone", WAIT_MS, async () =>
      (await attachments(story)).length === 0 ? true : undefined,
    );
    expect(driver.calls()).toEqual([`attach ${HANDLE} ${node.name}`, `detach ${HANDLE} ${node.name}`]);
    expect(await scanOn(node, ...BY_NAME)).toMatchObject({ verdict: "healthy", findings: [] });
  },
  HANG_GUARD_MS,
);

test(
  "an attachment whose attacher fails is left alone, and the pod runs once the storage attaches",
  async () => {
    const story = await cluster();
    const { node } = story;
    const driver = await startAttachingDriver(story);
    await driverRegistered(story);
    await driver.refuse(ERROR);
    await story.apply([...volumeObjects("data", HANDLE), podWith("db", node.name, "data", SLEEP)]);
    const first = await attachmentOf(story, "pv-data", ({ status }) => status?.attachError !== undefined);
    const id = `volume-attachment-stuck/${first.metadata.name}`;
    await until("the attachment is old enough", WAIT_MS, async () =>
      (await scanOn(node, ...BY_NAME)).findings.some((finding) => finding.id === id) ? true : undefined,
    );

    const { code, ...ran } = await unghostOn(node, "heal", "--yes", "-o", "json", ...BY_NAME);
    const left = reportOf({ code, ...ran });
    expect(left.actions).toMatchObject([
      { action: "none", outcome: "skipped", reason: expect.stringContaining(ERROR) },
    ]);
    expect([code, left.remaining]).toEqual([1, [id]]);
    const [now] = await attachments(story);
    expect(now?.metadata).toMatchObject({ uid: first.metadata.uid });
    expect(now?.metadata.deletionTimestamp).toBeUndefined();

    await driver.accept();
    await story.waitForPods(1, isReady);
    expect(await scanOn(node, ...BY_NAME)).toMatchObject({ verdict: "healthy", findings: [] });
  },
  HANG_GUARD_MS,
);
