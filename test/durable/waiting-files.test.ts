import { describe, expect, test } from "vitest";
import { waitingFiles } from "../../src/durable/waiting-files.ts";

describe("waitingFiles", () => {
  test("returns noticed files before those of a sweep, and each file once", () => {
    const waiting = waitingFiles();
    waiting.addSwept("/networks", ["a", "b"]);
    waiting.notice("/results", "c");
    waiting.notice("/results", "c");

    const first = waiting.take(2);

    expect([...first.keys()]).toEqual(["/results", "/networks"]);
    expect(waiting.size).toBe(1);
    expect([...(waiting.take(9).get("/networks")?.keys() ?? [])]).toEqual(["b"]);
    expect([waiting.size, waiting.take(9).size]).toEqual([0, 0]);
  });

  test("refuses more than its limit, for a later sweep", () => {
    const waiting = waitingFiles(2);

    expect(["a", "b", "c"].map((name) => waiting.notice("/results", name))).toEqual([true, true, false]);
    expect(waiting.size).toBe(2);
  });

  test("keeps the time of the first notice", () => {
    const waiting = waitingFiles();
    waiting.notice("/results", "a");
    const at = performance.now();
    waiting.notice("/results", "a");

    expect(waiting.take(1).get("/results")?.get("a")).toBeLessThanOrEqual(at);
  });
});
