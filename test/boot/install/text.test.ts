import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { installCommands, uninstallCommands } from "../../../src/boot/install/apply.ts";
import { authorship, NO_RECEIPT, receiptIn, receiptLine, sealed } from "../../../src/boot/install/files.ts";
import { shellWords } from "../../../src/boot/install/openrc.ts";
import { comment, execLine } from "../../../src/boot/install/units.ts";

describe("seal", () => {
  const text = fc.oneof(
    fc.string(),
    fc.string().map((rest) => `#!/sbin/openrc-run\n${rest}`),
  );

  test("recognises a sealed file, and detects any change", () => {
    fc.assert(
      fc.property(text, fc.string({ minLength: 1 }), (content, more) => {
        expect(authorship(sealed(content))).toBe("ours");
        expect(authorship(sealed(content) + more)).toBe("changed");
      }),
    );
  });

  test("keeps a script's first line first", () => {
    expect(sealed("#!/bin/sh\ntrue\n")).toMatch(/^#!\/bin\/sh\n# Written by `unghost install`.*\ntrue\n$/);
  });

  test("a file without our line is foreign; one with a damaged seal is ours and modified", () => {
    expect(authorship("[Unit]\n")).toBe("foreign");
    expect(authorship(sealed("x\n").replace(/Seal: .*/, ""))).toBe("changed");
  });
});

describe("receipt", () => {
  test("is parsed back as written; a broken one is ignored", () => {
    const receipt = { executable: { path: "/a b", sha256: "00" }, directories: ["/c"] };
    expect(receiptIn(`# first\n${receiptLine(receipt)}\n[Unit]\n`)).toEqual(receipt);
    expect(receiptIn("# Receipt: {broken}\n")).toEqual(NO_RECEIPT);
    expect(receiptIn('# Receipt: {"directories":7}\n')).toEqual(NO_RECEIPT);
    expect(receiptIn(undefined)).toEqual(NO_RECEIPT);
  });
});

describe("quoting", () => {
  test("passes arguments through a shell unchanged", () => {
    for (const word of ["plain", "", "a b", "it's", '"$HOME" `id` \\ !', "*;&|"]) {
      const printed = execFileSync("sh", ["-c", `printf %s ${shellWords([word])}`], { encoding: "utf8" });
      expect(printed).toBe(word);
    }
  });

  test.each([
    ["--deadline", "--deadline"],
    ["50%", "50%%"],
    ["$HOME", "$$HOME"],
    ["a b", '"a b"'],
    ["", '""'],
    ['say "x" \\', '"say \\"x\\" \\\\"'],
    ["two\nlines", '"two\\nlines"'],
  ])("escapes text in a unit: %j", (word, expected) => {
    expect(execLine([word])).toBe(expected);
  });

  test("keeps comment text inside the comment, and joins no lines", () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z.,]{1,30}$/), { minLength: 1 }), (words) => {
        const lines = comment(words.join(" ")).split("\n");
        expect(lines.every((line) => line.startsWith("# ") && !line.endsWith("\\"))).toBe(true);
        expect(lines.map((line) => line.slice(2)).join(" ")).toBe(words.join(" "));
      }),
    );
  });
});

describe("commands for the service manager", () => {
  const unit = "/etc/systemd/system/unghost-agent.service";

  test("reload after a change; stop our own units before they are removed", () => {
    expect(installCommands([unit])).toEqual({
      before: [],
      after: [
        ["systemctl", "daemon-reload"],
        ["systemctl", "restart", "unghost-agent.service"],
      ],
    });
    expect(uninstallCommands(["/etc/systemd/system/k3s.service.d/10-unghost.conf", unit])).toEqual({
      before: [["systemctl", "stop", "unghost-agent.service"]],
      after: [["systemctl", "daemon-reload"]],
    });
  });

  test("none for OpenRC, and none when nothing changed", () => {
    expect(installCommands(["/etc/init.d/unghost-boot"])).toEqual({ before: [], after: [] });
    expect(uninstallCommands([])).toEqual({ before: [], after: [] });
  });
});
