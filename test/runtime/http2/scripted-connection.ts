import { Connection } from "../../../src/runtime/http2/connection.ts";
import { encodeHeaders } from "../../../src/runtime/http2/hpack-encode.ts";
import type { Stream } from "../../../src/runtime/http2/stream.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { RecordedStream } from "./recorded-stream.ts";
import { listenScripted, type ScriptedPeer } from "./scripted-peer.ts";

/** A connection to a scripted server. */
export interface Scripted {
  readonly peer: ScriptedPeer;
  readonly connection: Connection;
  request(bodyBytes?: number): { readonly stream: Stream; readonly answer: RecordedStream };
  close(): Promise<void>;
}

export async function scripted(firstStreamId?: number): Promise<Scripted> {
  const dir = tempDir();
  const peer = await listenScripted(dir.join("peer.sock"));
  const connection = new Connection(dir.join("peer.sock"), {
    onClosed: () => undefined,
    ...(firstStreamId === undefined ? {} : { firstStreamId }),
  });
  return {
    peer,
    connection,
    request: (bodyBytes = 5) => {
      const answer = new RecordedStream();
      return {
        answer,
        stream: connection.request(encodeHeaders([[":method", "POST"]]), Buffer.alloc(bodyBytes), answer),
      };
    },
    close: async () => {
      connection.close();
      await peer.close();
      dir.remove();
    },
  };
}
