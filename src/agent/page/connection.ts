/** How the page and its agent are connected. */
export type Link =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "lost"; readonly lastSeenMs?: number };

/** Opens a stream of messages, and gives back how to close it. After `fail` the stream is of no more use. */
export type OpenStream = (receive: (data: string) => void, fail: () => void) => () => void;

export interface Listener {
  readonly onMessage: (data: string) => void;
  readonly onLink: (link: Link) => void;
}

const RETRY_MS = 1000;
/** The agent sends a message after each scan. A dead connection is detected by opening another. */
const SILENCE_MS = 150_000;

/**
 * Listens forever. The browser's own reconnecting gives up for good when a proxy or a half-started agent answers with
 * an error, so each failed stream is closed here and another one opened.
 */
export function listen(openStream: OpenStream, { onMessage, onLink }: Listener): void {
  let lastSeenMs: number | undefined;

  function open(): void {
    let silence = setTimeout(reopen, SILENCE_MS);
    const close = openStream(
      (data) => {
        clearTimeout(silence);
        silence = setTimeout(reopen, SILENCE_MS);
        lastSeenMs = Date.now();
        onLink({ kind: "live" });
        onMessage(data);
      },
      () => {
        clearTimeout(silence);
        close();
        onLink(lastSeenMs === undefined ? { kind: "lost" } : { kind: "lost", lastSeenMs });
        setTimeout(open, RETRY_MS);
      },
    );

    function reopen(): void {
      close();
      open();
    }
  }

  open();
}
