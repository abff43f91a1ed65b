import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LIMITS, readSavedScan, SAVED_SCAN, savedScanDocument } from "../../src/bundle/saved-scan.ts";
import { fromTagged, toTagged } from "../../src/bundle/tagged-json.ts";
import { packed, unpacked } from "../../src/bundle/tar.ts";
import { snapshotOf } from "../support/snapshot-builder.ts";

const AT = new Date(0);
const snapshot = snapshotOf({});
const saved = { version: "0.1.0", settings: { minAge: "10m" }, failedHeals: {}, snapshot };

function archiveOf(document: unknown, name = SAVED_SCAN): Uint8Array {
  return packed([{ name, text: JSON.stringify(document) }], AT);
}

function whyNot(archive: Uint8Array): string {
  const read = readSavedScan(archive);
  return read.ok ? "it was read" : read.why;
}

test("a snapshot comes back as it was, with its dates, big integers, maps and sets", () => {
  const read = readSavedScan(archiveOf(savedScanDocument(saved)));

  expect(read).toEqual({ ok: true, saved });
});

test("any value of JSON's types and ours survives the way through text", () => {
  const leaf = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n }),
    fc.date({ noInvalidDate: true }),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(tie("value")),
      fc.dictionary(fc.stringMatching(/^[a-z_]{1,5}$/), tie("value"), { noNullPrototype: true }),
      fc.array(tie("value")).map((list) => new Set(list)),
      fc.array(fc.tuple(fc.string(), tie("value"))).map((pairs) => new Map(pairs)),
    ),
  }));

  fc.assert(
    fc.property(value, (one) => {
      expect(fromTagged(JSON.parse(JSON.stringify(toTagged(one))))).toEqual(one);
    }),
    { numRuns: 200 },
  );
});

describe("an archive that anybody made is refused with its reason", () => {
  test.each([
    ["no archive", Buffer.from("hello"), "no gzip archive"],
    ["half an archive", archiveOf(savedScanDocument(saved)).subarray(0, 400), "not complete"],
    ["no tar inside", gzipSync("x".repeat(4096)), "no tar archive"],
    ["no end", gzipSync(Buffer.alloc(100)), "not complete"],
    ["a bomb", gzipSync(Buffer.alloc(LIMITS.maxBytes + 1)), "more than"],
    ["another archive", archiveOf({}, "../../etc/passwd"), `no ${SAVED_SCAN}`],
    [
      "two of one name",
      packed(
        [
          { name: "a", text: "" },
          { name: "a", text: "" },
        ],
        AT,
      ),
      "two entries of one name",
    ],
    ["another document", archiveOf({ kind: "NodeReport" }), "not what this version reads"],
    ["a later format", archiveOf({ ...Object(savedScanDocument(saved)), apiVersion: "unghost.dev/v9" }), "apiVersion"],
    ["an empty snapshot", archiveOf({ ...Object(savedScanDocument(saved)), snapshot: {} }), "its snapshot is not"],
    [
      "a number that is none",
      archiveOf({ ...Object(savedScanDocument(saved)), snapshot: { $bigint: "1e9" } }),
      "wrong form",
    ],
    ["a deep document", packed([{ name: SAVED_SCAN, text: `${"[".repeat(9e5)}${"]".repeat(9e5)}` }], AT), SAVED_SCAN],
    [
      "a deep snapshot",
      archiveOf({ ...Object(savedScanDocument(saved)), snapshot: JSON.parse(`${"[".repeat(999)}${"]".repeat(999)}`) }),
      "nested more than",
    ],
  ])("%s", (_what, archive, why) => {
    expect(whyNot(archive)).toContain(why);
  });

  test("too many entries", () => {
    const many = Array.from({ length: 5 }, (_, index) => ({ name: `f${index}`, text: "" }));

    expect(unpacked(packed(many, AT), { maxBytes: 1e6, maxMembers: 4 })).toMatchObject({ ok: false });
  });

  test("a truncated or changed archive never throws", () => {
    const whole = archiveOf(savedScanDocument(saved));

    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
        const changed = Uint8Array.from(whole);
        changed[at] = byte;
        readSavedScan(changed);
        readSavedScan(whole.subarray(0, at));
      }),
      { numRuns: 100 },
    );
  });
});
