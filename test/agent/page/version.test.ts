import { describe, expect, test } from "vitest";
import { shouldReload } from "../../../src/agent/page/verdict.ts";

describe("another version of the agent", () => {
  test("causes one reload, not a loop", () => {
    const kept = new Map<string, string>();
    const memory = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
    };

    expect(shouldReload("1", "1", memory)).toBe(false);
    expect(shouldReload("1", "2", memory)).toBe(true);
    expect(shouldReload("1", "2", memory)).toBe(false);
    expect(shouldReload("1", "3", memory)).toBe(true);
  });
});
