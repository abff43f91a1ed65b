import { isIPv6, type Socket } from "node:net";
import { isLoopback } from "../../host/http-page.ts";

interface Limits {
  /** Above this the busiest client loses its oldest connection, once that had its time. */
  readonly total: number;
  readonly perClient: number;
  /** Above this at once. */
  readonly most: number;
}

const LIMITS: Limits = { total: 64, perClient: 16, most: 1024 };

/** Far more than a request takes: a probe is answered before its connection may be ended. */
const GRACE_MS = 500;

interface Place {
  readonly socket: Socket;
  readonly client: string;
  readonly sinceMs: number;
}

/**
 * Decides which connections stay. A new one is always admitted, so that no client can occupy all places: the one
 * with the most connections loses its oldest instead. This machine itself (probes, port-forward) and the network have places
 * of their own.
 */
export function connectionPlaces() {
  const local = openPlaces({ ...LIMITS, perClient: LIMITS.total });
  const network = openPlaces(LIMITS);
  return {
    admit: (socket: Socket): void => {
      const client = clientOf(socket.remoteAddress ?? "");
      (isLoopback(client) ? local : network).admit(socket, client);
    },
    closeAll: (): void => {
      local.closeAll();
      network.closeAll();
    },
  };
}

export function openPlaces({ total, perClient, most }: Limits) {
  /** By client, the oldest first. */
  const held = new Map<string, Set<Place>>();
  let count = 0;

  function admit(socket: Socket, client: string, nowMs = performance.now()): void {
    const place: Place = { socket, client, sinceMs: nowMs };
    const own = held.get(client) ?? new Set();
    held.set(client, own.add(place));
    count += 1;
    socket.once("close", () => leave(place));
    if (count > most) release(busiest(), nowMs);
    else if (own.size > perClient) release(own, nowMs - GRACE_MS);
    else if (count > total) release(busiest(), nowMs - GRACE_MS);
  }

  function leave(place: Place): void {
    const own = held.get(place.client);
    if (own?.delete(place) !== true) return;
    count -= 1;
    if (own.size === 0) held.delete(place.client);
  }

  /** Disconnects the oldest if it was admitted by then. */
  function release([oldest]: Iterable<Place>, byMs: number): void {
    if (oldest === undefined || oldest.sinceMs > byMs) return;
    leave(oldest);
    oldest.socket.destroy();
  }

  function busiest(): Iterable<Place> {
    return [...held.values()].reduce((largest, one) => (one.size > largest.size ? one : largest));
  }

  return {
    admit,
    closeAll: (): void => {
      for (const own of held.values()) for (const { socket } of own) socket.destroy();
    },
  };
}

/** One machine may have every address of an IPv6 network, so all of them are one client. */
function clientOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  if (!isIPv6(plain) || isLoopback(plain)) return plain;
  const [left = [], right = []] = plain.split("::").map((half) => half.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => "0");
  return [...left, ...zeros, ...right].slice(0, 4).join(":");
}
