import { describe, expect, test } from "vitest";
import { adviseVersion } from "../../../src/agent/page/verdict.ts";

describe("another version of the agent", () => {
  test("causes one reload, not a loop", () => {
    const kept = new Map<string, string>();
    const memory = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
    };

    expect(adviseVersion("1", "1", memory)).toBe("same");
    expect(adviseVersion("1", "2", memory)).toBe("reload");
    expect(adviseVersion("1", "2", memory)).toBe("reload-did-not-help");
    expect(adviseVersion("1", "3", memory)).toBe("reload");
  });
});
