const BLOCK_BYTES = 256 * 1024;

/** Collects chunks by copying them into blocks: a million chunks of one byte take a megabyte. */
export function byteCollector() {
  let full: Buffer[] = [];
  let block = Buffer.alloc(0);
  let used = 0;
  let size = 0;
  return {
    add: (chunk: Uint8Array): void => {
      size += chunk.length;
      for (let from = 0; from < chunk.length; ) {
        if (used === block.length) {
          if (used > 0) full.push(block);
          block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
          used = 0;
        }
        const part = chunk.subarray(from, from + block.length - used);
        block.set(part, used);
        used += part.length;
        from += part.length;
      }
    },
    size: (): number => size,
    /** Returns what was collected, and starts again. */
    take: (): Buffer => {
      const taken = full.length === 0 ? block.subarray(0, used) : Buffer.concat([...full, block.subarray(0, used)]);
      full = [];
      block = Buffer.alloc(0);
      used = 0;
      size = 0;
      return taken;
    },
  };
}
