import { expect, test } from "vitest";
import { grouper } from "../../src/diagnose/explain/group.ts";
import { answersIn } from "../../src/diagnose/explain/lines.ts";

const lock = (pod: string) =>
  `failed to reserve sandbox name "${pod}_shop_3f8e6c1a_0": name "${pod}_shop_3f8e6c1a_0" is reserved for "abc"`;
const corrupt =
  'failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input';

test("records of one class are one group, a cause before a symptom, with their pods", () => {
  const groups = groupsOf([lock("a"), corrupt, lock("b"), lock("a")].join("\n\n"));

  expect(groups.map((group) => [group.kind === "class" && group.class, group.count])).toEqual([
    ["libcni-result-cache-corrupt", 1],
    ["sandbox-name-held-by-inflight-run", 3],
  ]);
  expect(groups[1]?.pods.map((pod) => pod.name)).toEqual(["a", "b"]);
});

test("a symptom that is far more frequent comes before a single cause", () => {
  const [first] = groupsOf([corrupt, ...Array.from({ length: 300 }, () => lock("a"))].join("\n\n"));

  expect(first).toMatchObject({ class: "sandbox-name-held-by-inflight-run", count: 300 });
});

test("failures of one operation and cause are one group, after the classes and before other troubles", () => {
  const failure = (pod: string) =>
    `failed to "KillPodSandbox" for "1" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for pod sandbox k8s_${pod}_shop_1_0(${"ab".repeat(32)}): the moon is full"`;

  const groups = groupsOf(["Error: ImagePullBackOff", failure("a"), failure("b"), lock("c")].join("\n\n"));

  expect(groups.map(({ kind, count }) => [kind, count])).toEqual([
    ["class", 1],
    ["failure", 2],
    ["topic", 1],
  ]);
});

test("a group lists alternative classes, and what would decide", () => {
  const [group] = groupsOf(lock("a"));

  expect(group).toMatchObject({
    alternatives: expect.arrayContaining(["clock-step-sandbox-attempt-reuse"]),
    decides: expect.stringMatching(/holder/),
  });
});

test("no records give no groups", () => {
  expect(groupsOf("")).toEqual([]);
});

function groupsOf(text: string) {
  const all = grouper();
  for (const record of answersIn(text)) all.add(record);
  return all.groups();
}
