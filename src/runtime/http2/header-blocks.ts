import { type Frame, hasFlag, withoutPadding } from "./frames.ts";
import { ErrorCode, Flag, FrameType, ProtocolError } from "./protocol.ts";
import { MAX_HEADER_BYTES } from "./settings.ts";

/** A complete header block, and whether it ends its stream. */
export interface HeaderBlock {
  readonly streamId: number;
  readonly endStream: boolean;
  readonly bytes: Buffer;
}

const PRIORITY_BYTES = 5;

/** Assembles header blocks. CONTINUATION frames follow their HEADERS frame without other frames in between. */
export class HeaderBlocks {
  #partial: { readonly head: Frame; readonly parts: Buffer[]; bytes: number } | undefined;

  /** Throws if a started block is not continued, or if a CONTINUATION has no started block. */
  expect({ type, streamId }: Frame): void {
    const goesOn = type === FrameType.continuation;
    if (this.#partial === undefined ? !goesOn : goesOn && this.#partial.head.streamId === streamId) return;
    throw new ProtocolError(ErrorCode.protocolError, "a header block that is cut and does not go on");
  }

  /** Accepts HEADERS or CONTINUATION and returns the block that it completes. */
  push(frame: Frame): HeaderBlock | undefined {
    const block = this.#partial ?? { head: frame, parts: [], bytes: 0 };
    const part = frame.type === FrameType.headers ? fragmentOf(frame) : frame.payload;
    // Not counted: a server may send any number of empty frames.
    if (part.length > 0) block.parts.push(part);
    block.bytes += part.length;
    if (block.bytes > MAX_HEADER_BYTES) {
      throw new ProtocolError(ErrorCode.enhanceYourCalm, `headers of more than ${MAX_HEADER_BYTES} bytes`);
    }
    const isComplete = hasFlag(frame, Flag.endHeaders);
    this.#partial = isComplete ? undefined : block;
    if (!isComplete) return undefined;
    const { streamId } = frame;
    return { streamId, endStream: hasFlag(block.head, Flag.endStream), bytes: Buffer.concat(block.parts) };
  }
}

function fragmentOf(frame: Frame): Buffer {
  const bytes = withoutPadding(frame);
  if (!hasFlag(frame, Flag.priority)) return bytes;
  if (bytes.length < PRIORITY_BYTES) throw new ProtocolError(ErrorCode.frameSizeError, "HEADERS cut off");
  return bytes.subarray(PRIORITY_BYTES);
}
