import type { ResultFile } from "../snapshot/types.ts";

/** The network's own address, its gateway's and the broadcast address are not given to pods. */
const NOT_FOR_PODS = 3;

/**
 * How many IPv4 addresses a network has for pods, by the length of network that its plugins wrote beside each address
 * they assigned. A narrower configured range is not visible there. undefined where no result has it.
 */
export function addressesFor(network: string, results: readonly ResultFile[]): number | undefined {
  for (const file of results) {
    if (file.network !== network) continue;
    for (const address of file.addresses ?? []) {
      const [, bits] = /^\d{1,3}(?:\.\d{1,3}){3}\/(\d{1,2})$/.exec(address) ?? [];
      if (bits !== undefined && Number(bits) <= 32) return Math.max(0, 2 ** (32 - Number(bits)) - NOT_FOR_PODS);
    }
  }
  return undefined;
}
