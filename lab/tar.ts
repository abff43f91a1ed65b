/** One entry of a tar archive, as far as an image needs them. */
export type TarEntry =
  | { readonly type: "file"; readonly path: string; readonly content: Uint8Array; readonly mode: number }
  | { readonly type: "directory"; readonly path: string; readonly mode: number }
  | { readonly type: "symlink"; readonly path: string; readonly target: string };

const BLOCK = 512;
const TYPE_FLAGS = { file: "0", symlink: "2", directory: "5" } as const;

/** A ustar archive with fixed owner and times, so that it is reproducible. */
export function tar(entries: readonly TarEntry[]): Buffer {
  const parts: Buffer[] = [];
  for (const entry of entries) {
    const content = entry.type === "file" ? Buffer.from(entry.content) : Buffer.alloc(0);
    parts.push(header(entry, content.length), content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK));
  }
  parts.push(Buffer.alloc(2 * BLOCK));
  return Buffer.concat(parts);
}

function header(entry: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  if (Buffer.byteLength(entry.path) > 100) throw new Error(`path too long for a plain tar header: ${entry.path}`);
  block.write(entry.path, 0);
  writeOctal(block, entry.type === "symlink" ? 0o777 : entry.mode, 100, 8);
  writeOctal(block, 0, 108, 8);
  writeOctal(block, 0, 116, 8);
  writeOctal(block, size, 124, 12);
  writeOctal(block, 0, 136, 12);
  // The checksum is computed with its own field full of spaces.
  block.fill(" ", 148, 156);
  block.write(TYPE_FLAGS[entry.type], 156);
  if (entry.type === "symlink") block.write(entry.target, 157);
  block.write("ustar\u000000", 257);
  const checksum = block.reduce((sum, byte) => sum + byte, 0);
  block.write(`${checksum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

function writeOctal(block: Buffer, value: number, offset: number, width: number): void {
  block.write(`${value.toString(8).padStart(width - 1, "0")}\0`, offset);
}
