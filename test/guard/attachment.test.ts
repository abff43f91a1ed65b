import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseAttachment, readAttachment } from "../../src/guard/attachment.ts";
import { recordedConfig } from "../../src/guard/config.ts";

const CONFIG = '{"cniVersion":"1.0.0",\n"name":"net","server_socket":"/run/x"}';

const RECORD = [
  "attachment 1",
  "phase completed",
  "time 1",
  "plugin /opt/cni/bin/bridge",
  "boot b",
  "env 16",
  "CNI_ARGS=A=b\nC=d",
  `config ${CONFIG.length}`,
  CONFIG,
  "result 10",
  '{"ips":[]}',
  "end",
  "",
].join("\n");

test("reads what the launcher records, whatever bytes are in it", () => {
  expect(parseAttachment(Buffer.from(RECORD))).toEqual({
    phase: "completed",
    boot: "b",
    path: "/opt/cni/bin/bridge",
    environment: { CNI_ARGS: "A=b\nC=d" },
    config: CONFIG,
    result: '{"ips":[]}',
  });
});

test("no part of a record is taken for a whole one", () => {
  for (let length = 0; length < RECORD.length; length++)
    expect(parseAttachment(Buffer.from(RECORD.slice(0, length))), `${length} bytes`).toBeUndefined();
});

test("missing, unreadable and damaged are three answers", () => {
  const dir = mkdtempSync(join(tmpdir(), "unghost-guard-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, "torn"), "");

  expect(readAttachment(join(dir, "none"))).toEqual({ kind: "missing" });
  expect(readAttachment(dir)).toEqual({ kind: "unreadable", error: "is a directory" });
  expect(readAttachment(join(dir, "torn"))).toEqual({ kind: "unparsable" });
});

function attached(phase: "completed" | "failed", result: string) {
  return { phase, boot: "", path: "", environment: {}, config: CONFIG, result };
}

test("a DEL that lacks what ADD was given gets it, with the result of ADD", () => {
  const recorded = recordedConfig(attached("completed", '{"ips":[]}'), '{"cniVersion":"1.0.0","name":"net"}');

  expect(JSON.parse(recorded ?? "")).toEqual({
    cniVersion: "1.0.0",
    name: "net",
    server_socket: "/run/x",
    prevResult: { ips: [] },
  });
});

test("the error of an ADD that failed is no previous result", () => {
  const recorded = recordedConfig(attached("failed", '{"code":100}'), "{}");

  expect(JSON.parse(recorded ?? "")).not.toHaveProperty("prevResult");
});

test("a DEL that had all of it is not repeated, also where a later plugin of the chain changed the result", () => {
  const given = `${CONFIG.slice(0, -1)},"prevResult":{"ips":[{"address":"10.0.0.1/8"}],"routes":[]}}`;

  expect(recordedConfig(attached("completed", '{"ips":[]}'), given)).toBeUndefined();
});
