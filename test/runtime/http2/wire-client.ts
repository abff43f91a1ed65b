/** Opens a wire, writes its arguments, and prints what it received: for engines other than the one that runs the tests. */
import { openWire } from "../../../src/runtime/http2/wire.ts";

const [path = "", count = "0", closesAtOnce = ""] = process.argv.slice(2);
const heard: string[] = [];
let isReturned = false;

const wire = openWire(path, {
  onOpen: () => {
    heard.push("open");
    write();
  },
  onBytes: (bytes) => heard.push(bytes.toString()),
  onEnd: (error) => {
    const code = error !== undefined && "code" in error ? error.code : "plain";
    heard.push(`end ${String(code)}${isReturned ? "" : " too early"}`);
  },
});
isReturned = true;
write();
if (closesAtOnce !== "") {
  wire.close();
  write();
}
process.on("exit", () => process.stdout.write(JSON.stringify(heard)));

function write(): void {
  for (let index = 0; index < Number(count); index++) wire.write(Buffer.alloc(1_000_000, "x"));
}
