import { describe, expect, test } from "vitest";
import { type AttachmentQuestion, attachmentName, attachmentReader, readOnce } from "../../src/kube/attachments.ts";
import type { NodeVolume } from "../../src/kube/cluster-facts.ts";
import { KubeError } from "../../src/kube/errors.ts";
import { fakeApi } from "./fake-api.ts";
import { attachmentObject } from "./volume-objects.ts";

const PATH = "/apis/storage.k8s.io/v1/volumeattachments";
const DELETED = "2026-11-15T03:25:00Z";
const MINUTE_MS = 60_000;
type Attachment = ReturnType<typeof attachmentObject>;

function volume(handle: string): NodeVolume {
  return { driver: "driver.example", handle };
}

function named(handle: string, parts: Parameters<typeof attachmentObject>[0] = {}): Attachment {
  return attachmentObject({ name: attachmentName(volume(handle), "n1"), volume: `pv-${handle}`, ...parts });
}

/** An API server with pagination, like the real one without resourceVersion=0. */
function cluster(attachments: Attachment[]) {
  const requests: string[] = [];
  const api = fakeApi({
    get: (path) => {
      requests.push(path);
      const [, name] = path.split(`${PATH}/`);
      if (name !== undefined) {
        const found = attachments.find(({ metadata }) => metadata.name === name);
        return found === undefined ? Promise.reject(new KubeError("not-found", "no")) : Promise.resolve(found);
      }
      const query = new URL(path, "http://api").searchParams;
      const from = Number(query.get("continue") ?? 0);
      const to = from + Number(query.get("limit"));
      const remainingItemCount = attachments.length - to;
      const metadata = remainingItemCount > 0 ? { continue: String(to), remainingItemCount } : {};
      return Promise.resolve({ metadata, items: attachments.slice(from, to) });
    },
  });
  return { api, attachments, takeRequests: () => requests.splice(0) };
}

function many(count: number): Attachment[] {
  return Array.from({ length: count }, (_, index) =>
    attachmentObject({
      name: `csi-${index}`,
      node: `other-${index}`,
      volume: `pv-${index}`,
      status: { attached: true },
    }),
  );
}

const QUIET: AttachmentQuestion = { node: "n1", isAwaited: false, volumes: { attached: [], inUse: [] }, most: 3 };

function watching(attachments: Attachment[]) {
  const server = cluster(attachments);
  let nowMs = 0;
  const read = attachmentReader(() => nowMs);
  return {
    ...server,
    pass: (minutes: number) => {
      nowMs += minutes * MINUTE_MS;
    },
    names: async (question: Partial<AttachmentQuestion> = {}) =>
      (await read(server.api, { ...QUIET, ...question }))?.here.map(({ name }) => name),
  };
}

describe("the attachments of a node in a small cluster", () => {
  test("are listed at first, then every few minutes, and on each scan while something waits", async () => {
    const { names, takeRequests, pass } = watching([...many(499), named("a", { deletionTimestamp: DELETED })]);

    expect(await names()).toHaveLength(1);
    expect(takeRequests()).toEqual([`${PATH}?limit=500`]);
    // One hangs: it is requested each time.
    expect(await names()).toHaveLength(1);
    expect(takeRequests()).toHaveLength(1);
    pass(11);
    await names();
    expect(takeRequests()).toHaveLength(1);
  });

  test("cost nothing while nothing waits", async () => {
    const { names, takeRequests } = watching(many(500));
    await names();
    takeRequests();

    const settled = { attached: [volume("a")], inUse: [volume("a")] };
    for (let scan = 0; scan < 10; scan++) await names({ volumes: settled });

    expect(takeRequests()).toEqual([]);
  });
});

describe("the attachments of a node in a large cluster", () => {
  test("limits full lists by their length, whatever waits", async () => {
    const { names, takeRequests, pass } = watching(many(20_000));

    for (let minute = 0; minute < 24 * 60; minute++) {
      await names({ isAwaited: true, volumes: { attached: [], inUse: [volume("a")] } });
      pass(1);
    }

    const pages = takeRequests().filter((path) => path.startsWith(`${PATH}?`)).length;
    // 20,000 at 100 per minute are a list every 200 minutes; the first is at a random time.
    expect(pages * 500).toBeLessThanOrEqual(20_000 * 9);
    expect(pages * 500).toBeGreaterThanOrEqual(20_000 * 6);
  });

  test.each<readonly [string, Partial<AttachmentQuestion>]>([
    ["a volume that a pod waits for", { isAwaited: true, volumes: { attached: [], inUse: [volume("a")] } }],
    ["a volume that is not in use any more", { volumes: { attached: [volume("a")], inUse: [] } }],
  ])("%s is requested by name", async (_what, question) => {
    const { names, takeRequests, attachments } = watching(many(20_000));
    await names();
    takeRequests();
    attachments.push(named("a", { deletionTimestamp: DELETED, status: { attached: true } }));

    expect(await names(question)).toEqual([attachmentName(volume("a"), "n1")]);
    expect(takeRequests()).toEqual([`${PATH}/${attachmentName(volume("a"), "n1")}`]);
  });

  test("an attachment that left the node's list is followed until it is gone", async () => {
    const attached = { attached: [volume("a")], inUse: [volume("a")] };
    const hanging = named("a", { deletionTimestamp: DELETED, status: { attached: true } });
    const { names, takeRequests, attachments } = watching([...many(20_000), hanging]);
    await names({ volumes: attached });

    expect(await names()).toEqual([hanging.metadata.name]);
    expect(await names()).toEqual([hanging.metadata.name]);
    attachments.pop();
    await names();
    takeRequests();
    await names();
    expect(takeRequests()).toEqual([]);
  });

  test("an attachment whose deletion hangs while in use is found by the next list", async () => {
    const hanging = named("a", { deletionTimestamp: DELETED, status: { attached: true } });
    const { names, pass } = watching([...many(20_000), hanging]);
    const inUse = { volumes: { attached: [volume("a")], inUse: [volume("a")] } };
    await names(inUse);
    pass(200);

    expect(await names(inUse)).toEqual([hanging.metadata.name]);
  });

  test("many waiting attachments are requested in turns", async () => {
    const handles = Array.from({ length: 9 }, (_, index) => `v${index}`);
    const waiting = handles.map((handle) => named(handle, { status: { attached: false } }));
    const { names, takeRequests, attachments } = watching(many(20_000));
    await names();
    attachments.push(...waiting);
    takeRequests();

    for (let scan = 0; scan < 3; scan++) await names({ volumes: { attached: [], inUse: handles.map(volume) } });

    expect(new Set(takeRequests()).size).toBe(9);
  });
});

test("a single scan reads all pages, keeps those of its node, and knows where else their volumes are attached", async () => {
  const elsewhere = attachmentObject({ name: "csi-x", node: "n2", volume: "pv-a", status: { attached: true } });
  const { api, takeRequests } = cluster([named("a"), ...many(1200), elsewhere]);

  const found = await readOnce(api, QUIET);

  expect(found?.here.map(({ volume: name }) => name)).toEqual(["pv-a"]);
  expect(found?.elsewhere.get("pv-a")).toEqual([{ name: "csi-x", node: "n2", deleting: false }]);
  expect(takeRequests()).toEqual([1, 2, 3].map(() => expect.stringContaining("limit=500")));
});
