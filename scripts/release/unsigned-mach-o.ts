const HEADER_BYTES = 32;
const COMMANDS_AT = 16;
const LC_SEGMENT_64 = 0x19;
const LC_CODE_SIGNATURE = 0x1d;

/**
 * A program for Intel Macs without the signature of its engine: bun leaves that one in, it does not fit the program, and
 * macOS would end the program for it. Unsigned ones run there. For Apple silicon, bun writes a new signature.
 */
export function withoutSignature(program: Buffer): Buffer {
  const count = program.readUInt32LE(COMMANDS_AT);
  const commands = loadCommands(program, count);
  const signature = commands.at(-1);
  const linkEdit = commands.find(
    ({ at, kind }) => kind === LC_SEGMENT_64 && program.toString("latin1", at + 8, at + 24).startsWith("__LINKEDIT\0"),
  );
  if (signature?.kind !== LC_CODE_SIGNATURE || linkEdit === undefined)
    throw new Error("the program for Intel Macs does not end with a signature: find out how bun makes it now");
  const end = program.readUInt32LE(signature.at + 8);
  if (end + program.readUInt32LE(signature.at + 12) !== program.length)
    throw new Error("the signature of the program for Intel Macs is not at its end");
  const unsigned = Buffer.from(program.subarray(0, end));
  unsigned.fill(0, signature.at, signature.at + signature.bytes);
  unsigned.writeUInt32LE(count - 1, COMMANDS_AT);
  unsigned.writeUInt32LE(unsigned.readUInt32LE(COMMANDS_AT + 4) - signature.bytes, COMMANDS_AT + 4);
  const start = unsigned.readBigUInt64LE(linkEdit.at + 40);
  unsigned.writeBigUInt64LE(BigInt(end) - start, linkEdit.at + 48);
  return unsigned;
}

function loadCommands(program: Buffer, count: number) {
  const commands: { readonly at: number; readonly kind: number; readonly bytes: number }[] = [];
  for (let at = HEADER_BYTES; commands.length < count; at += commands.at(-1)?.bytes ?? 0)
    commands.push({ at, kind: program.readUInt32LE(at), bytes: program.readUInt32LE(at + 4) });
  return commands;
}
