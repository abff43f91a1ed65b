import { type CallOptions, callUnary, method } from "./call.ts";
import { InfoRequest, PluginInfo } from "./gen/pluginregistration/v1/registration.ts";
import { openChannel } from "./grpc-channel.ts";

/** An answer has a few names in it. */
const MOST_BYTES = 64 * 1024;

const getInfo = method("pluginregistration.Registration", "GetInfo", InfoRequest, PluginInfo);

/** What kubelet asks each plugin that registers with it: its type, its name and its own socket. Throws RuntimeError. */
export async function askPluginInfo(path: string, options: CallOptions): Promise<PluginInfo> {
  const channel = openChannel(path, { maxBytes: MOST_BYTES });
  try {
    return await callUnary(channel, path, getInfo, {}, options);
  } finally {
    channel.close();
  }
}
