import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cniDel } from "../../../src/heal/steps/cni-exec.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "unghost-cni-"));
  mkdirSync(join(dir, "bin/below"), { recursive: true });
  const script = `#!/bin/sh\ncat >${dir}/executed\n`;
  for (const path of ["evil", "bin/good", "bin/below/evil"]) writeFileSync(join(dir, path), script, { mode: 0o755 });
});
afterEach(() => rmSync(dir, { recursive: true }));

function del(plugin: string) {
  const place = { hostRoot: "/", binDirs: [join(dir, "bin")], timeoutMs: 60_000 };
  return cniDel({ plugin, containerId: "a", interfaceName: "eth0", config: {} }, place);
}

test("executes a plugin from a CNI directory", async () => {
  expect(await del("good")).toBeUndefined();
  expect(existsSync(join(dir, "executed"))).toBe(true);
});

test.each(["../evil", "below/evil", "below\\evil", "/bin/true", "./good", "good/", "..", ".", "", "good\0"])(
  "refuses a plugin type that is not a plain file name: %j",
  async (type) => {
    expect(await del(type)).toContain("is not a plugin's name");
    expect(existsSync(join(dir, "executed"))).toBe(false);
  },
);
