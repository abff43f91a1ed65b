import { createHash } from "node:crypto";

/** What the loaders of macOS and Windows check first. */
export interface ProgramFile {
  readonly format: "Mach-O" | "PE";
  readonly cpu: "amd64" | "arm64" | "other";
  /** What does not fit: macOS kills a program for it, Windows does not start it. */
  readonly problems: readonly string[];
}

export function readProgram(bytes: Buffer): ProgramFile {
  return bytes.readUInt32LE(0) === MACHO_64 ? readMachO(bytes) : readPortableExecutable(bytes);
}

const MACHO_64 = 0xfeedfacf;
const MACHO_CPUS: Readonly<Record<number, ProgramFile["cpu"]>> = { 0x01000007: "amd64", 0x0100000c: "arm64" };
const MACHO_HEADER_BYTES = 32;
const LC_CODE_SIGNATURE = 0x1d;

function readMachO(bytes: Buffer): ProgramFile {
  const cpu = MACHO_CPUS[bytes.readUInt32LE(4)] ?? "other";
  const commands = bytes.readUInt32LE(16);
  let signature: Buffer | undefined;
  for (let index = 0, at = MACHO_HEADER_BYTES; index < commands; index++, at += bytes.readUInt32LE(at + 4)) {
    if (bytes.readUInt32LE(at) !== LC_CODE_SIGNATURE) continue;
    const start = bytes.readUInt32LE(at + 8);
    signature = bytes.subarray(start, start + bytes.readUInt32LE(at + 12));
  }
  // Only Apple silicon requires one.
  const unsigned = cpu === "arm64" ? ["no code signature"] : [];
  const problems = signature === undefined ? unsigned : signatureProblems(bytes, signature);
  return { format: "Mach-O", cpu, problems };
}

const SUPER_BLOB = 0xfade0cc0;
const CODE_DIRECTORY = 0xfade0c02;
const SHA256_BYTES = 32;

/** Each page has a hash in the code directory, and arm64 Macs end a program at the first page with another one. */
function signatureProblems(file: Buffer, signature: Buffer): readonly string[] {
  if (signature.readUInt32BE(0) !== SUPER_BLOB) return ["the code signature is not one"];
  const blobs = Array.from({ length: signature.readUInt32BE(8) }, (_, index) =>
    signature.subarray(signature.readUInt32BE(12 + index * 8 + 4)),
  );
  const directory = blobs.find((blob) => blob.readUInt32BE(0) === CODE_DIRECTORY);
  if (directory === undefined) return ["the code signature has no code directory"];
  const hashesAt = directory.readUInt32BE(16);
  const [pages, limit] = [directory.readUInt32BE(28), directory.readUInt32BE(32)];
  const [hashBytes, pageShift] = [directory.readUInt8(36), directory.readUInt8(39)];
  if (hashBytes !== SHA256_BYTES) return [`hashes of ${hashBytes} bytes`];
  const pageBytes = 2 ** pageShift;
  if (pages !== Math.ceil(limit / pageBytes)) return [`${pages} hashes for ${limit} bytes`];
  return Array.from({ length: pages }, (_, page) => page).flatMap((page) => {
    const content = file.subarray(page * pageBytes, Math.min((page + 1) * pageBytes, limit));
    const wanted = directory.subarray(hashesAt + page * hashBytes, hashesAt + (page + 1) * hashBytes);
    return createHash("sha256").update(content).digest().equals(wanted) ? [] : [`page ${page} is not what was signed`];
  });
}

const PE_CPUS: Readonly<Record<number, ProgramFile["cpu"]>> = { 0x8664: "amd64", 0xaa64: "arm64" };
const PE32_PLUS = 0x20b;
const CONSOLE = 3;
const CERTIFICATES = 4;

function readPortableExecutable(bytes: Buffer): ProgramFile {
  const header = bytes.readUInt32LE(0x3c);
  const optional = header + 24;
  const sectionsAt = optional + bytes.readUInt16LE(header + 20);
  const sections = Array.from({ length: bytes.readUInt16LE(header + 6) }, (_, index) => sectionsAt + index * 40);
  const ends = sections.map((at) => bytes.readUInt32LE(at + 16) + bytes.readUInt32LE(at + 20));
  const certificates = bytes.readUInt32LE(optional + 112 + CERTIFICATES * 8 + 4);
  const checks: readonly (readonly [boolean, string])[] = [
    [bytes.toString("latin1", 0, 2) === "MZ" && bytes.toString("latin1", header, header + 4) === "PE\0\0", "no PE"],
    [bytes.readUInt16LE(optional) === PE32_PLUS, "not 64 bits"],
    [bytes.readUInt16LE(optional + 68) === CONSOLE, "no console program"],
    [Math.max(...ends) <= bytes.length, "a section ends behind the file"],
    // That of the engine, which does not fit any more: Windows would call the file tampered with.
    [certificates === 0, "a signature that is not ours"],
  ];
  const problems = checks.flatMap(([fits, problem]) => (fits ? [] : [problem]));
  return { format: "PE", cpu: PE_CPUS[bytes.readUInt16LE(header + 4)] ?? "other", problems };
}
