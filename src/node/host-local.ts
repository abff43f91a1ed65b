import { IP_REGEX } from "valibot";
import { eachPaced } from "../host/concurrency.ts";
import { resolveOnHost } from "../host/paths.ts";
import {
  describeKind,
  failedListing,
  type Listing,
  listDirectory,
  MAX_ENTRIES,
  readRegularFile,
} from "../host/safe-fs.ts";
import { absent, failed, type Oddity, read, type Source } from "../host/source.ts";
import { printable } from "../host/text.ts";
import type { AddressLease, HostLocalNetwork } from "./types/cni.ts";

export interface HostLocalDir {
  readonly root: string;
  readonly dir: string;
  readonly maxEntries?: number;
  readonly signal?: AbortSignal;
}

/** An id and an interface name; host-local writes nothing longer. */
const MAX_LEASE_BYTES = 4096;

const NETWORK_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;

/** `<dir>/<network>/<address>`: the addresses that host-local has allocated. */
export async function readHostLocal(where: HostLocalDir): Promise<Source<readonly HostLocalNetwork[]>> {
  const { root, dir, maxEntries = MAX_ENTRIES, signal } = where;
  const opened = resolveOnHost(root, dir, "keep");
  const listing = listDirectory(opened, maxEntries);
  if (listing.kind === "absent") return absent(`there is no ${dir}`);
  if (listing.kind === "refused") return failedListing(dir, listing);

  const networks: HostLocalNetwork[] = [];
  const oddities = undecodableNames(dir, listing);
  for (const entry of listing.entries) {
    const shown = `${dir}/${printable(entry.name)}`;
    if (entry.kind !== "directory") {
      oddities.push({ path: shown, reason: `is ${describeKind(entry.kind)} where a network's directory belongs` });
      continue;
    }
    if (!NETWORK_NAME.test(entry.name)) {
      oddities.push({ path: shown, reason: "its name is not one that a network may have" });
      continue;
    }
    const leases = listDirectory(`${opened}/${entry.name}`, maxEntries);
    if (leases.kind === "absent") continue;
    if (leases.kind === "refused") return failedListing(shown, leases);
    const network = { network: entry.name, dir: `${dir}/${entry.name}`, opened: `${opened}/${entry.name}` };
    const value = await readLeases(network, leases, oddities, signal);
    if (value === undefined)
      return failed(`${shown} was not read to its end in time (${leases.entries.length} entries)`);
    networks.push({ network: network.network, dir: network.dir, leases: value });
  }
  return read(networks, oddities);
}

async function readLeases(
  network: { readonly dir: string; readonly opened: string },
  listing: Listing & { readonly kind: "listed" },
  oddities: Oddity[],
  signal: AbortSignal | undefined,
): Promise<readonly AddressLease[] | undefined> {
  const leases: AddressLease[] = [];
  oddities.push(...undecodableNames(network.dir, listing));
  const finished = await eachPaced(listing.entries, signal, ({ name, kind }) => {
    if (name === "lock" || name.startsWith("last_reserved_ip.")) return;
    const path = `${network.dir}/${name}`;
    function passOver(reason: string): void {
      oddities.push({ path: `${network.dir}/${printable(name)}`, reason });
    }
    if (!IP_REGEX.test(name)) return passOver("its name is no address");
    if (kind !== "file") return passOver(`is ${describeKind(kind)} where a lease belongs`);
    const content = readRegularFile(`${network.opened}/${name}`, MAX_LEASE_BYTES);
    if (content.kind === "gone") return;
    if (content.kind !== "content") return passOver(content.reason);

    const { size, modifiedAt } = content;
    const owner = parseLease(content.text);
    if (owner?.separator === "\n") {
      passOver("its id is not followed by CR LF, so host-local cannot find it again to free it");
    }
    const lease = { path, address: name, size, modifiedAt };
    leases.push(
      owner === undefined ? lease : { ...lease, owner: { id: owner.id, interfaceName: owner.interfaceName } },
    );
  });
  return finished ? leases : undefined;
}

function undecodableNames(dir: string, listing: Listing & { readonly kind: "listed" }): Oddity[] {
  return listing.undecodable.map((name) => ({ path: `${dir}/${name}`, reason: "its name is not valid UTF-8" }));
}

interface LeaseOwner {
  readonly id: string;
  /** Empty in files of host-local before 0.8, which wrote only the id. */
  readonly interfaceName: string;
  readonly separator: "\r\n" | "\n" | "";
}

const LEASE = /^([A-Za-z0-9][A-Za-z0-9_.-]*)(?:(\r?\n)([^\s/:]{1,15}))?$/;

/** `<id>`, CR LF, `<interface>`. host-local compares the trimmed text as a whole. */
export function parseLease(text: string): LeaseOwner | undefined {
  const [, id, separator, interfaceName] = LEASE.exec(text.trim()) ?? [];
  if (id === undefined) return undefined;
  return {
    id,
    interfaceName: interfaceName ?? "",
    separator: separator === "\r\n" || separator === "\n" ? separator : "",
  };
}
