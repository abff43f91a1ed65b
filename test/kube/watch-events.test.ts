import fc from "fast-check";
import { expect, test } from "vitest";
import { type WatchEvent, watchEvents } from "../../src/kube/api.ts";

async function eventsIn(chunks: readonly Buffer[], longestLine?: number): Promise<readonly WatchEvent[]> {
  async function* stream(): AsyncGenerator<Buffer> {
    yield* chunks;
  }
  const events: WatchEvent[] = [];
  for await (const event of watchEvents(stream(), longestLine)) events.push(event);
  return events;
}

test("events are the same however the stream is cut into chunks, even within a character", async () => {
  const event = fc.record({
    type: fc.constantFrom("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"),
    object: fc.record({ metadata: fc.record({ name: fc.string({ unit: "grapheme" }) }) }),
  });
  const cuts = fc.array(fc.nat(), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 8 }), cuts, async (events, places) => {
      const whole = Buffer.from(events.map((one) => `${JSON.stringify(one)}\n`).join(""));
      const at = [0, ...places.map((place) => place % (whole.length + 1)), whole.length].toSorted((a, b) => a - b);
      const chunks = at.slice(1).map((end, index) => whole.subarray(at[index], end));

      expect(await eventsIn(chunks)).toEqual(events);
    }),
  );
});

test("a truncated last line is not an event", async () => {
  expect(await eventsIn([Buffer.from('{"type":"ADDED","object":{}}\n{"type":"MOD')])).toHaveLength(1);
});

test.each([
  ["something else than JSON", "<html>\n"],
  ["JSON that is not an event", '{"type":"SHRUNK","object":{}}\n'],
])("%s ends the watch", async (_what, text) => {
  await expect(eventsIn([Buffer.from(text)])).rejects.toMatchObject({ kind: "unreadable" });
});

test("a line without an end is aborted", async () => {
  const chunks = Array.from({ length: 20 }, () => Buffer.from("x".repeat(100)));

  await expect(eventsIn(chunks, 1000)).rejects.toMatchObject({
    kind: "unreadable",
    message: expect.stringContaining("longer than 1000 bytes"),
  });
});
