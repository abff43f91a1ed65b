import { IP_REGEX } from "valibot";
import { describeKind, type HostDir, readEachEntry, readRegularFile } from "../host/safe-fs.ts";
import { type Oddity, read, type Source } from "../host/source.ts";
import type { AddressLease, HostLocalNetwork } from "./types/cni.ts";

/** An id and an interface name; host-local writes nothing longer. */
const MAX_LEASE_BYTES = 4096;

const NETWORK_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;

/** `<dir>/<network>/<address>`: the addresses that host-local has allocated. */
export async function readHostLocal(where: HostDir): Promise<Source<readonly HostLocalNetwork[]>> {
  // Without the signal: networks are few, and the one that is not read to its end is named.
  const names = await readEachEntry({ ...where, signal: undefined }, ({ name, kind }, _opened, passOver) => {
    if (kind !== "directory") return passOver(`is ${describeKind(kind)} where a network's directory belongs`);
    return NETWORK_NAME.test(name) ? name : passOver("its name is not one that a network may have");
  });
  if (names.status !== "read") return names;
  const networks: HostLocalNetwork[] = [];
  const oddities: Oddity[] = [...names.oddities];
  for (const network of names.value) {
    const dir = `${where.dir}/${network}`;
    const leases = await readLeases({ ...where, dir });
    if (leases.status === "absent") continue;
    if (leases.status === "failed") return leases;
    oddities.push(...leases.oddities);
    networks.push({ network, dir, leases: leases.value });
  }
  return read(networks, oddities);
}

async function readLeases(where: HostDir): Promise<Source<readonly AddressLease[]>> {
  return await readEachEntry(where, ({ name, kind }, opened, passOver) => {
    if (name === "lock" || name.startsWith("last_reserved_ip.")) return undefined;
    if (!IP_REGEX.test(name)) return passOver("its name is no address");
    if (kind !== "file") return passOver(`is ${describeKind(kind)} where a lease belongs`);
    const content = readRegularFile(opened, MAX_LEASE_BYTES);
    if (content.kind === "gone") return undefined;
    if (content.kind !== "content") return passOver(content.reason);

    const { size, modifiedAt } = content;
    const owner = parseLease(content.text);
    if (owner?.separator === "\n") {
      passOver("its id is not followed by CR LF, so host-local cannot find it again to free it");
    }
    const lease = { path: `${where.dir}/${name}`, address: name, size, modifiedAt };
    return owner === undefined ? lease : { ...lease, owner: { id: owner.id, interfaceName: owner.interfaceName } };
  });
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
