import { expect, test } from "vitest";
import { grouper } from "../../src/diagnose/explain/group.ts";
import { explainText } from "../../src/diagnose/explain/lines.ts";

const lock = (pod: string) =>
  `failed to reserve sandbox name "${pod}_shop_3f8e6c1a_0": name "${pod}_shop_3f8e6c1a_0" is reserved for "abc"`;
const corrupt =
  'failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input';

test("records of one class are one group, the most frequent first, with their pods", () => {
  const groups = groupsOf([corrupt, lock("a"), lock("b"), lock("a")].join("\n\n"));

  expect(groups.map(({ class: id, count }) => [id, count])).toEqual([
    ["sandbox-name-held-by-inflight-run", 3],
    ["libcni-result-cache-corrupt", 1],
  ]);
  expect(groups[0]?.pods.map((pod) => pod.name)).toEqual(["a", "b"]);
});

test("a group lists alternative classes, and what would decide", () => {
  const [group] = groupsOf(lock("a"));

  expect(group?.alternatives).toContain("clock-step-sandbox-attempt-reuse");
  expect(group?.decides).toMatch(/holder/);
});

test("no records give no groups", () => {
  expect(groupsOf("")).toEqual([]);
});

function groupsOf(text: string) {
  const all = grouper();
  for (const record of explainText(text)) all.add(record);
  return all.groups();
}
