import { describe, expect, test } from "vitest";
import { answersIn } from "../../src/diagnose/explain/lines.ts";
import { recordsInJson } from "../../src/logs/json-list.ts";

const ID = "7c1f0e5ab2d94836f1a0c7be52d86e4913fa07cd2b6e8150947bd3f6ac8e210d";
const corrupt = `failed to destroy network for sandbox "${ID}": failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input`;
const orphaned =
  'orphaned pod "9f" found, but failed to rmdir() volume at path /var/lib/kubelet/pods/9f: directory not empty';
const both = ["libcni-result-cache-corrupt", "orphaned-volumes-directory"];

function classesIn(text: string): readonly (string | undefined)[] {
  return answersIn(text).map(({ matches: [first] }) => first?.class);
}

describe("an answer in JSON on one line", () => {
  test.each<[string, unknown]>([
    [
      "Elasticsearch",
      { hits: { total: 2, hits: [{ _source: { message: corrupt } }, { _source: { message: orphaned } }] } },
    ],
    [
      "Loki",
      {
        data: {
          result: [
            {
              stream: { app: "kubelet" },
              values: [
                ["1", corrupt],
                ["2", orphaned],
              ],
            },
          ],
        },
      },
    ],
    ["Loki, two streams", { streams: [{ values: [["1", corrupt]] }, { values: [["2", orphaned]] }] }],
    ["kubectl", { kind: "List", items: [{ reason: "FailedKillPod", message: corrupt }, { message: orphaned }] }],
    ["a list of lines", [{ line: corrupt }, { line: orphaned }]],
    ["a list of texts in objects", { logs: [{ text: corrupt }, { text: orphaned }] }],
  ])("of %s is taken apart", (_, answer) => {
    expect(classesIn(JSON.stringify(answer))).toEqual(both);
    expect(classesIn(`before\n${JSON.stringify(answer)}\nafter`)).toEqual(both);
  });

  test.each([
    ["one record", JSON.stringify({ level: "error", msg: corrupt })],
    ["kubelet's causes of one error", JSON.stringify({ msg: corrupt, errCauses: [{ error: "a" }, { error: "b" }] })],
    ["a list of one", JSON.stringify({ items: [{ message: corrupt }] })],
    ["no JSON", `{"items": [ ${corrupt}`],
    ["a list in brackets that is none", `[shop/web-0]: ${corrupt}`],
  ])("%s stays as it is", (_, text) => {
    expect(recordsInJson(text)).toBeUndefined();
    expect(classesIn(text)).toEqual(["libcni-result-cache-corrupt"]);
  });
});
