import { ErrorCode, ProtocolError } from "./protocol.ts";

/**
 * RFC 7541, appendix B, by length. The code is canonical: codes of one length are consecutive in the order of their
 * bytes, and longer ones follow shorter ones. So the lengths define the code.
 */
const CHARACTERS_BY_BITS: readonly (readonly [bits: number, characters: string])[] = [
  [5, "012aceiost"],
  [6, " %-./3456789=A_bdfghlmnpru"],
  [7, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"],
  [8, "&*,;XZ"],
  [10, '!"()?'],
  [11, "'+|"],
  [12, "#>"],
  [13, "\x00$@[]~"],
  [14, "^}"],
  [15, "<`{"],
  [19, "\\\xc3\xd0"],
  [20, "\x80\x82\x83\xa2\xb8\xc2\xe0\xe2"],
  [21, "\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\xe6"],
  [22, "\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4\xc6\xe4\xe8\xe9"],
  [
    23,
    "\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4\xb6\xb7\xbc\xbf\xc5\xe7\xef",
  ],
  [24, "\x09\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed"],
  [25, "\xc7\xcf\xea\xeb"],
  [26, "\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\xf3\xff"],
  [27, "\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe"],
  [
    28,
    "\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f\xdc\xf9",
  ],
  // Thirty ones follow these three: the EOS symbol.
  [30, "\n\r\x16"],
];

/** Codes of one length, left-aligned to the length of the longest code for comparison. */
interface Codes {
  readonly bits: number;
  readonly first: number;
  readonly end: number;
  readonly characters: string;
}

const LONGEST_CODE = 30;
const CODES = codesByLength();

function codesByLength(): readonly Codes[] {
  let end = 0;
  return CHARACTERS_BY_BITS.map(([bits, characters]) => {
    const first = end;
    end += characters.length * 2 ** (LONGEST_CODE - bits);
    return { bits, first, end, characters };
  });
}

export function huffmanDecoded(bytes: Uint8Array): string {
  const bitsInAll = bytes.length * 8;
  let text = "";
  let at = 0;
  while (at < bitsInAll) {
    const ahead = bitsFrom(bytes, at);
    const codes = codesOf(ahead);
    // The last byte is padded with ones. If the padding forms a code, it is EOS, which may not be part of the string.
    if (codes === undefined && bitsInAll - at < 8) break;
    if (codes === undefined || at + codes.bits > bitsInAll) {
      throw new ProtocolError(ErrorCode.compressionError, "headers with a string that does not end as it must");
    }
    text += codes.characters[(ahead - codes.first) >>> (LONGEST_CODE - codes.bits)];
    at += codes.bits;
  }
  return text;
}

function codesOf(ahead: number): Codes | undefined {
  for (const codes of CODES) {
    if (ahead < codes.end) return codes;
  }
  return undefined;
}

/** Reads as many bits as the longest code has, with ones after the last byte. */
function bitsFrom(bytes: Uint8Array, at: number): number {
  const index = at >> 3;
  const shift = at & 7;
  const fifth = (bytes[index + 4] ?? 0xff) >> (8 - shift);
  let bits = 0;
  for (let byte = index; byte < index + 4; byte++) bits = (bits << 8) | (bytes[byte] ?? 0xff);
  return ((bits << shift) | fifth) >>> (32 - LONGEST_CODE);
}
