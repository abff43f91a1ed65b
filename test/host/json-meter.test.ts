import { expect, test } from "vitest";
import { byteCollector } from "../../src/host/bytes.ts";
import { jsonMeter } from "../../src/host/json-meter.ts";
import { parseJson } from "../../src/host/text.ts";

const LIMITS = { values: 6, depth: 3 };
const TOO_MANY = "has more than 6 values";
const TOO_DEEP = "is nested more than 3 deep";

test.each([
  ['{"a":[1,2],"b":{}}', undefined],
  ["[[[1]]]", undefined],
  ["[[[[1]]]]", TOO_DEEP],
  ['{"a":{"b":{"c":{}}}}', TOO_DEEP],
  ["[1,2,3,4,5,6,7]", TOO_MANY],
  ["[{},{},{},{}]", TOO_MANY],
  ['["[[[[,,,,,,,,"]', undefined],
  [String.raw`["\"[[[[,,,,,,,,"]`, undefined],
  [String.raw`["\\",[[[[`, TOO_DEEP],
  ["]]]][[[[[[[", TOO_MANY],
])("%s: %s", (text, excess) => {
  expect(jsonMeter(LIMITS).add(Buffer.from(text))).toBe(excess);
});

test("counts the same in chunks of any size", () => {
  const text = Buffer.from(String.raw`{"a\"":["x,y",{"b":1}],"c":"é,"}`);
  const whole = jsonMeter();
  whole.add(text);
  for (const size of [1, 2, 3, 7]) {
    const meter = jsonMeter();
    for (let from = 0; from < text.length; from += size) meter.add(text.subarray(from, from + size));
    expect(meter.count()).toBe(whole.count());
  }
});

test("text with too many values is not parsed", () => {
  expect(parseJson(`[${"{},".repeat(400_000)}{}]`)).toBeUndefined();
  expect(parseJson(`[${"0,".repeat(100_000)}0]`)).toHaveLength(100_001);
});

test("collected chunks of any size are what was sent", () => {
  const sent = Buffer.from(Array.from({ length: 600_000 }, (_, index) => index % 251));
  const collector = byteCollector();
  let size = 1;
  for (let from = 0; from < sent.length; from += size) {
    size = (size * 7) % 50_021;
    collector.add(sent.subarray(from, from + size));
  }

  expect(collector.size()).toBe(sent.length);
  expect(collector.take().equals(sent)).toBe(true);
  expect([collector.size(), collector.take().length]).toEqual([0, 0]);
});
