/** The part of the protobuf encoding that CSI's messages need: strings, messages and small numbers. */

export function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);
}

/** A number or a value of an enumeration. */
export function numberField(number: number, value: number): Buffer {
  return Buffer.concat([Buffer.from([number << 3]), varint(value)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}

/** The string in one length-delimited field. */
export function textOf(message: Buffer, wanted: number): string {
  let at = 0;
  const read = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++] ?? 0;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = read();
    if ((tag & 7) === 0) {
      read();
      continue;
    }
    const length = read();
    if (tag >> 3 === wanted) return message.toString("utf8", at, at + length);
    at += length;
  }
  return "";
}

/** Five bytes precede each gRPC message: the compression flag and the length. */
const PREFIX_BYTES = 5;

export function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

export function unframed(body: Buffer): Buffer {
  return body.subarray(PREFIX_BYTES);
}
