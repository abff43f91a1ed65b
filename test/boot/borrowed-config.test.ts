import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";
import { borrowedConfig } from "../../src/boot/borrowed-runtime.ts";

const PATH = "/etc/containerd/config.toml";

function borrowed(text: string, cri: "with-cri" | "without-cri" = "with-cri"): unknown {
  const config = borrowedConfig(text, PATH, cri);
  return "text" in config ? parse(config.text, { integersAsBigInt: true }) : config;
}

describe("configuration of the temporary containerd", () => {
  test.each([
    ["on one line", 'imports = ["conf.d/*.toml", "/etc/own.toml"]'],
    ["on several lines", 'imports = [\n  "conf.d/*.toml", # ours\n  "/etc/own.toml",\n]'],
    ["in literal strings", "imports = ['conf.d/*.toml', '/etc/own.toml']"],
    ["under a quoted key", '"imports" = ["conf.d/*.toml", "/etc/own.toml"]'],
  ])("makes imports absolute: %s", (_how, text) => {
    expect(borrowed(`version = 2\n${text}\n`)).toEqual({
      version: 2n,
      imports: ["/etc/containerd/conf.d/*.toml", "/etc/own.toml"],
    });
  });

  test.each([
    ["tables", '[grpc]\naddress = "/run/a"\n[ttrpc]\n[debug]\nlevel = "debug"\n[metrics]\naddress = "[::]:1338"\n'],
    ["indented tables", '  [ grpc ]\n  address = "/run/a"\n  [metrics]\n    address = ":1"\n'],
    ["dotted keys", 'grpc.address = "/run/a"\nmetrics.address = ":1"\ndebug.address = "/run/d"\n'],
    ["inline tables", 'grpc = { address = "/run/a" }\nmetrics = { address = ":1" }\n'],
    ["sub-tables", '[grpc.tls]\nx = 1\n["metrics"]\naddress = ":1"\n'],
  ])("removes other listeners: %s", (_how, text) => {
    expect(borrowed(`version = 3\n${text}`)).toEqual({ version: 3n });
  });

  test("leaves root and state to the command line, and keeps those of plugins", () => {
    const plugin = '[plugins."io.containerd.snapshotter.v1.overlayfs"]\n  root = "/srv"\n';

    expect(borrowed(`root = "/data"\nstate = "/run/data"\n${plugin}`)).toEqual({
      plugins: { "io.containerd.snapshotter.v1.overlayfs": { root: "/srv" } },
    });
  });

  test("keeps integers, floats, strings and brackets in strings", () => {
    const text =
      'oom_score = -999\nratio = 2.0\nbig = 9007199254740993\n[proxy]\nnote = """\n[grpc]\nimports = ["x"]"""\n';

    expect(borrowed(text)).toEqual({
      oom_score: -999n,
      ratio: 2,
      big: 9007199254740993n,
      proxy: { note: '[grpc]\nimports = ["x"]' },
    });
    expect(borrowedConfig(text, PATH, "with-cri")).toMatchObject({ text: expect.stringContaining("ratio = 2.0") });
  });

  test.each([
    ["no plugin is disabled", "", []],
    [
      "some plugins are disabled",
      'disabled_plugins = [\n  "io.containerd.internal.v1.opt",\n]\n',
      ["io.containerd.internal.v1.opt"],
    ],
  ])("disables CRI when %s", (_what, text, before) => {
    expect(borrowed(`${text}[plugins]\n`, "without-cri")).toMatchObject({
      disabled_plugins: [
        "io.containerd.grpc.v1.cri",
        "io.containerd.cri.v1.runtime",
        "io.containerd.cri.v1.images",
        "io.containerd.podsandbox.controller.v1.podsandbox",
        ...before,
      ],
    });
  });

  test("fails when the file is not TOML, and the error names the file", () => {
    expect(borrowed("version = \n")).toEqual({ problem: expect.stringContaining(`${PATH} is not valid TOML`) });
  });
});
