import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeHeaders } from "../../../src/runtime/http2/hpack-decode.ts";
import { encodeHeaders } from "../../../src/runtime/http2/hpack-encode.ts";
import { huffmanDecoded } from "../../../src/runtime/http2/huffman.ts";
import { ErrorCode, ProtocolError } from "../../../src/runtime/http2/protocol.ts";

const text = fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)) });
const broken = expect.objectContaining({ errorCode: ErrorCode.compressionError });

describe("header block", () => {
  test.each([
    ["C.2.1", "400a637573746f6d2d6b65790d637573746f6d2d686561646572", { "custom-key": "custom-header" }],
    ["C.2.2", "040c2f73616d706c652f70617468", { ":path": "/sample/path" }],
    ["C.2.3", "100870617373776f726406736563726574", { password: "secret" }],
    ["C.2.4", "82", { ":method": "GET" }],
    ["C.3.1", "828684410f7777772e6578616d706c652e636f6d", exampleRequest()],
    ["C.4.1", "828684418cf1e3c2e5f23a6ba0ab90f4ff", exampleRequest()],
    [
      "C.6.1",
      "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
      {
        ":status": "302",
        "cache-control": "private",
        date: "Mon, 21 Oct 2013 20:13:21 GMT",
        location: "https://www.example.com",
      },
    ],
  ])("of RFC 7541's example %s is decoded", (_example, block, headers) => {
    expect(read(block)).toEqual(headers);
  });

  test.each([
    ["by the index 0", "80"],
    ["by an index of the dynamic table (C.3.2)", "828684be58086e6f2d6361636865"],
    ["whose name is in the dynamic table", "7e0161"],
    ["with an endless index", "ffffffffffff"],
    ["with a truncated value", "040c2f73"],
    ["without a value", "04"],
    ["after which the table's size changes", "8220"],
    ["before which the table becomes larger than allowed", "2182"],
    ["that ends within a number", "7f"],
  ])("with a header %s is refused", (_what, block) => {
    expect(() => read(block)).toThrow(broken);
  });

  test("may start with an empty table, even twice", () => {
    expect(read("202082")).toEqual({ ":method": "GET" });
  });

  test("with a number of several bytes is decoded (C.1.2)", () => {
    const value = "x".repeat(1337);

    expect(read(`047fba09${Buffer.from(value).toString("hex")}`)).toEqual({ ":path": value });
  });

  test("that we encoded is decoded back, and is smaller by the static table", () => {
    fc.assert(
      fc.property(fc.dictionary(text, text), (headers) => {
        expect(Object.fromEntries(decodeHeaders(encodeHeaders(Object.entries(headers))))).toEqual({ ...headers });
      }),
    );
    expect(encodeHeaders([[":method", "POST"]]).toString("hex")).toBe("2083");
    expect(encodeHeaders([["content-type", "a"]]).toString("hex")).toBe("200f100161");
  });

  test("of arbitrary bytes is decoded or refused", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          decodeHeaders(Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });

  test("is decoded the same a second time, and after many others", () => {
    const first = encodeHeaders([["name", "value"]]);
    const expected = new Map([["name", "value"]]);

    expect(decodeHeaders(first)).toEqual(expected);
    expect(decodeHeaders(first)).toEqual(expected);
    for (let index = 0; index < 200; index++) decodeHeaders(encodeHeaders([["name", `${index}`]]));

    expect(decodeHeaders(first)).toEqual(expected);
  });
});

describe("Huffman code", () => {
  test.each([
    ["\x00", 0x1ff8, 13],
    ["\x01", 0x7fffd8, 23],
    ["\t", 0xffffea, 24],
    ["\n", 0x3ffffffc, 30],
    ["\r", 0x3ffffffd, 30],
    ["\x16", 0x3ffffffe, 30],
    ["\x7f", 0xffffffc, 28],
    ["\xf9", 0xffffffe, 28],
    ["\xff", 0x3ffffee, 26],
    ["\\", 0x7fff0, 19],
    ["0", 0, 5],
    ["z", 0x7b, 7],
  ])("of %j is as in RFC 7541, also between others", (character, code, bits) => {
    const bitsOfA = "00011";
    const own = code.toString(2).padStart(bits, "0");

    expect(huffmanDecoded(packed(own))).toBe(character);
    expect(huffmanDecoded(packed(`${bitsOfA}${own}${bitsOfA}`))).toBe(`a${character}a`);
  });

  test.each([
    ["is padded with zeros", "00011000"],
    ["is padded by a whole byte", `00011111${"1".repeat(8)}`],
    ["contains EOS", "1".repeat(32)],
    ["is truncated within a code", "11111110"],
  ])("that %s is refused", (_what, bits) => {
    expect(() => huffmanDecoded(packed(bits))).toThrow(broken);
  });
});

function exampleRequest(): Record<string, string> {
  return { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com" };
}

function read(hex: string): Record<string, string> {
  return Object.fromEntries(decodeHeaders(Buffer.from(hex, "hex")));
}

/** The last byte is padded with ones. */
function packed(bits: string): Buffer {
  const whole = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  return Buffer.from(whole.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}
