import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { textChunks } from "../../src/cli/text-input.ts";

const TEXT = "Größe: ein Satz\nand another\n";

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

async function read(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const chunk of textChunks(chunks)) all.push(chunk);
  return Buffer.concat(all).toString("utf8");
}

describe.each([1, 2, 3, 7, 4096])("in pieces of %i bytes", (size) => {
  test.each<[string, Uint8Array]>([
    ["plain text", Buffer.from(TEXT)],
    ["compressed text", gzipSync(TEXT)],
    ["UTF-16", Buffer.from(`\uFEFF${TEXT}`, "utf16le")],
    ["UTF-16 of the other byte order", Buffer.from(`\uFEFF${TEXT}`, "utf16le").swap16()],
  ])("%s is read whole", async (_, bytes) => {
    expect(await read(inPieces(bytes, size))).toBe(TEXT);
  });
});

test.each([0, 1])("an input of %i bytes is read", async (length) => {
  expect(await read(inPieces(Buffer.from("x".repeat(length)), 1))).toBe("x".repeat(length));
});

test("what is compressed and broken is an error", async () => {
  const broken = gzipSync(TEXT).subarray(0, 15);

  await expect(read(inPieces(broken, 4))).rejects.toThrow("unexpected end of file");
});
