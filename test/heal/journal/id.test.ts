import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isJournalId, journalIds } from "../../../src/heal/journal/entry.ts";
import { steadyRandom } from "../heal-fixture.ts";

describe("journalIds", () => {
  test("ascend even when the clock steps back to 1970", () => {
    const times = fc.array(fc.integer({ min: 0, max: 4_000_000_000_000 }), { minLength: 2, maxLength: 50 });
    fc.assert(
      fc.property(times, (moments) => {
        const left = [...moments];
        const newId = journalIds(() => new Date(left.shift() ?? 0), steadyRandom());

        const ids = moments.map(() => newId());

        expect(ids.every(isJournalId)).toBe(true);
        expect(ids).toEqual(ids.toSorted());
        expect(new Set(ids).size).toBe(ids.length);
      }),
    );
  });
});

describe("isJournalId", () => {
  test.each(["", "..", "../../etc", "lqx0aaaaa-abc", "lqx0aaaaa-abcd/", "LQX0AAAAA-abcd", "lqx0aaaaa-abcd\n"])(
    "rejects what could be a path: %j",
    (text) => expect(isJournalId(text)).toBe(false),
  );
});
