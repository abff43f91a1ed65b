import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  parseCniArgs,
  parseCniEnviron,
  parseListeningSockets,
  parseNamespaceLink,
  parseStat,
  splitNul,
} from "../../src/host/proc.ts";
import { ID } from "./temp-dir.ts";

function statLine(comm: string, state = "S", flags = 4194560): string {
  return `42 (${comm}) ${state} 7 42 42 0 -1 ${flags} 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 9 9\n`;
}

describe("parseStat", () => {
  test.each(["containerd", "a b", "x) S 1 (y", "((", "))", "new\nline", ""])(
    "finds the fields after the name %j",
    (comm) => {
      expect(parseStat(statLine(comm))).toEqual({
        pid: 42,
        comm,
        state: "S",
        parentPid: 7,
        session: 42,
        kernelThread: false,
        startedSecondsAfterBoot: 1234.56,
      });
    },
  );

  test("recognises kernel threads by their flag", () => {
    expect(parseStat(statLine("kworker/0:1", "I", 0x00208040))?.kernelThread).toBe(true);
  });

  test.each(["", "42", "42 (sh", "42 (sh) S 7", "x (sh) S 7 42 42 0 -1 1 1 2 3 4 5 6 7 8 20 0 1 0 5"])(
    "refuses %j",
    (text) => {
      expect(parseStat(text)).toBeUndefined();
    },
  );
});

describe("parseCniEnviron", () => {
  const environ = `PATH=/bin\0CNI_COMMAND=ADD\0CNI_CONTAINERID=${ID}\0CNI_IFNAME=eth0\0CNI_NETNS=/run/netns/a=b\0CNI_ARGS=A=1;B=2\0`;

  test("reads the call from the environment", () => {
    expect(parseCniEnviron(environ)).toEqual({
      command: "ADD",
      containerId: ID,
      netns: "/run/netns/a=b",
      args: "A=1;B=2",
    });
  });

  test("a DEL after a reboot has no namespace", () => {
    expect(parseCniEnviron(`CNI_COMMAND=DEL\0CNI_CONTAINERID=${ID}\0CNI_NETNS=\0`)).toMatchObject({ netns: "" });
  });

  test.each([
    "",
    "PATH=/bin\0",
    "CNI_COMMAND=VERSION\0",
    "CNI_COMMAND=ADD\0",
    `CNI_COMMAND=rm\0CNI_CONTAINERID=${ID}\0`,
    `X=CNI_COMMAND=ADD\0CNI_CONTAINERID=${ID}\0`,
    `CNI_CONTAINERID=${ID}\0`,
  ])("%j is not a call", (text) => {
    expect(parseCniEnviron(text)).toBeUndefined();
  });
});

test("parseCniArgs reads pairs and skips the rest", () => {
  expect([...parseCniArgs("IgnoreUnknown=1;K8S_POD_NAME=web=0;;x;=y")]).toEqual([
    ["IgnoreUnknown", "1"],
    ["K8S_POD_NAME", "web=0"],
  ]);
});

test.each([
  ["net:[4026531840]", 4026531840n],
  ["net:[99999999999999999999]", 99999999999999999999n],
  ["mnt:[4026531840]", undefined],
  ["net:[]", undefined],
  ["", undefined],
])("parseNamespaceLink of %j is %s", (link, inode) => {
  expect(parseNamespaceLink(link)).toBe(inode);
});

test("parseListeningSockets returns listening bound sockets, including paths with spaces", () => {
  const text = [
    "Num       RefCount Protocol Flags    Type St Inode Path",
    "0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/containerd/containerd.sock",
    "0000000000000000: 00000003 00000000 00000000 0001 03 12346 /run/containerd/containerd.sock",
    "0000000000000000: 00000002 00000000 00010000 0001 01   77 /run/with a space",
    "0000000000000000: 00000002 00000000 00010000 0001 01 78",
    "0000000000000000: 00000002 00000000 00010000 0001 01 79 @abstract",
    "",
  ].join("\n");

  expect(parseListeningSockets(text)).toEqual([
    { inode: "12345", path: "/run/containerd/containerd.sock" },
    { inode: "77", path: "/run/with a space" },
    { inode: "79", path: "@abstract" },
  ]);
});

test("splitNul drops only the terminator", () => {
  expect(splitNul("a\0\0b\0")).toEqual(["a", "", "b"]);
  expect(splitNul("")).toEqual([]);
});

test("no parser ever throws", () => {
  const parsers = [parseStat, parseCniEnviron, parseCniArgs, parseNamespaceLink, parseListeningSockets, splitNul];
  const pieces = fc.constantFrom("CNI_COMMAND=ADD", "\0", "(", ")", " ", ID, "net:[", "]", "1", ":", "\n", "00010000");
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.array(fc.oneof(pieces, fc.string())).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, (anything) => {
      for (const parse of parsers) parse(anything);
    }),
  );
});

test("a megabyte of hex or of socket lines is parsed in linear time", () => {
  expect(parseListeningSockets(`${"0: ".repeat(350_000)}\n`)).toEqual([]);
  expect(parseStat(`1 (${")".repeat(1_000_000)}`)).toBeUndefined();
});
