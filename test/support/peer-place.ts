import { afterEach, beforeEach } from "vitest";
import { tempDir } from "./temp-dir.ts";

/** A directory for the sockets of each test, and cleanup after it. */
export interface PeerPlace {
  socket(name: string): string;
  onCleanUp(...cleanUps: readonly (() => Promise<void> | void)[]): void;
}

export function usePeerPlace(): PeerPlace {
  let dir: ReturnType<typeof tempDir>;
  const waiting: (() => Promise<void> | void)[] = [];
  beforeEach(() => {
    dir = tempDir();
  });
  afterEach(async () => {
    for (const cleanUp of waiting.splice(0)) await cleanUp();
    dir.remove();
  });
  return { socket: (name) => dir.join(name), onCleanUp: (...cleanUps) => void waiting.push(...cleanUps) };
}
