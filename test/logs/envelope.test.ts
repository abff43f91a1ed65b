import { describe, expect, test } from "vitest";
import { parseEnvelope } from "../../src/logs/envelope.ts";

const TIME = 'time="2026-11-16T03:22:07.1Z"';
const KLOG = "E1116 03:22:07.101010     811 log.go:32]";

describe("log envelope", () => {
  test.each([
    [
      "containerd",
      `${TIME} level=error msg="StopPodSandbox for \\"ab\\" failed" error="a \\"b\\" \\\\\\"c\\\\\\"" id=1/2`,
      { format: "logrus", level: "error", message: 'StopPodSandbox for "ab" failed', error: 'a "b" \\"c\\"' },
    ],
    ["a bare message", `${TIME} level=info msg=hello`, { format: "logrus", level: "info", message: "hello" }],
    [
      "containerd in JSON",
      '{"error":"a \\"b\\"","level":"error","msg":"it failed","time":"2026-11-16T03:22:07Z"}',
      { format: "logrus", level: "error", message: "it failed", error: 'a "b"' },
    ],
    [
      "kubelet",
      `${KLOG} "It failed" err="rpc error: \\"x\\"" podSandboxID="ab"`,
      { format: "klog", level: "error", message: "It failed", error: 'rpc error: "x"' },
    ],
    [
      "kubelet in JSON",
      '{"ts":1763263327000.1,"caller":"kuberuntime/kuberuntime_sandbox.go:72","msg":"It failed","pod":{"name":"x"},"err":"no"}',
      { format: "klog", level: "error", message: "It failed", error: "no" },
    ],
    ["escapes of every kind", `${TIME} level=error msg="\\u00e9\\x41\\101\\n\\t\\U0001f47b"`, { message: "éAA\n\t👻" }],
  ])("of %s is split into its fields", (_, line, expected) => {
    expect(parseEnvelope(line)).toMatchObject(expected);
  });

  test("keeps a nested error as text", () => {
    const envelope = parseEnvelope(`${TIME} level=error msg=m error="x\\" error=\\"y" other="z"`);

    expect(envelope?.error).toBe('x" error="y');
    expect([...(envelope?.fields.keys() ?? [])]).toEqual(["time", "level", "msg", "error", "other"]);
  });

  test.each([
    ["text before it", `hook wrote: ${TIME} level=error msg=m error="x"`],
    ["an indented line, as klog writes multi-line text", `\t${KLOG} "It failed" err="x"`],
    ["text after it", `${TIME} level=error msg=m error="x" and more`],
    ["a duplicate field", `${TIME} level=error msg=m error="x" error="y"`],
    ["an unclosed quote", `${TIME} level=error msg="m`],
    ["a quote that closes too early", `${TIME} level=error msg="a"b" error="x"`],
    ["no time", 'level=error msg=m error="x"'],
    ["a container's own line", `2026-11-16T03:22:07.1Z stdout F ${TIME} level=error msg=m error="x"`],
    ["no message in quotes", `${KLOG} It failed: err="x"`],
    ["a truncated header", 'E1116 log.go:32] "It failed" err="x"'],
    ["JSON that is not an object", '["msg"]'],
    ["JSON of another program", '{"msg":"m","err":"x"}'],
    ["truncated JSON", '{"msg":"m","time":"t","level":"error","error":"x'],
  ])("is not parsed from %s", (_, line) => {
    expect(parseEnvelope(line)).toBeUndefined();
  });

  test.each([
    ["after a value that Go prints unquoted", `${KLOG} "It failed" obj={a err="x"} err="y"`],
    ["after another field", `${KLOG} "It failed" pod="a/b" err="x"`],
    ["of several lines", `${KLOG} "It failed" err=<`],
  ])("of kubelet has no error when it is %s", (_, line) => {
    expect(parseEnvelope(line)).not.toHaveProperty("error", expect.anything());
  });

  test("is parsed in linear time, whatever it contains", () => {
    const long = `${TIME} level=error msg="${'\\"'.repeat(500_000)}`;

    expect(parseEnvelope(long)).toBeUndefined();
    expect(parseEnvelope(`${long}"`)?.message).toHaveLength(500_000);
  });
});
