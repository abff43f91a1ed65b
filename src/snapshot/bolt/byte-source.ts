/** Bytes that are read piece by piece: a file of any size, or an array in a test. */
export interface ByteSource {
  readonly size: number;
  /** Exactly `length` bytes. The caller asks only for what lies inside `size`. */
  read(offset: number, length: number): Uint8Array | ReadFailure;
}

/** The file is shorter than its size, or the read failed. */
export interface ReadFailure {
  readonly failure: string;
}

export function bytesAsSource(bytes: Uint8Array): ByteSource {
  return { size: bytes.length, read: (offset, length) => bytes.subarray(offset, offset + length) };
}
