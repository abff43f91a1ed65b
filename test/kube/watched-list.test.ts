import * as v from "valibot";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../lab/poll.ts";
import type { Api, WatchEvent } from "../../src/kube/api.ts";
import { KubeError } from "../../src/kube/errors.ts";
import { watchList } from "../../src/kube/watched-list.ts";

const HANG_MS = 30_000;
const TEXT = "x".repeat(1024 * 1024);

/** An API that has no objects at first, and then adds this one under ever new names. */
function endlessApi(): Api {
  async function* watch(): AsyncGenerator<WatchEvent> {
    for (let index = 0; ; index += 1) {
      const metadata = { name: `object-${index}`, resourceVersion: String(index) };
      yield await Promise.resolve({ type: "ADDED", object: { metadata, text: `${index} ${TEXT}` } });
    }
  }
  const get = () => Promise.resolve({ metadata: { resourceVersion: "1" }, items: [] });
  return { get, watch, close: () => undefined } as unknown as Api;
}

test("a watch that adds large objects without end is given up", async () => {
  const list = watchList(
    {
      path: "/objects",
      query: () => ({}),
      schema: v.object({ metadata: v.object({ name: v.string() }), text: v.string() }),
      metadataOnly: false,
      keyOf: ({ metadata }) => metadata.name,
      reduce: ({ text }) => text,
    },
    { open: () => Promise.resolve({ api: endlessApi(), name: "n" }), openMs: HANG_MS, onChange: () => undefined },
  );
  onTestFinished(() => list.close());

  const error = await until("the watch is given up", HANG_MS, () => {
    const items = list.items(0);
    return items instanceof KubeError && items.kind === "unreadable" ? items : undefined;
  });

  expect(error.message).toBe("/objects has too large objects");
});
