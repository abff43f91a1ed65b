import { connect } from "node:net";

/** Like external-attacher: connects to the driver's socket, and exits if no process serves it. */
const [socket = ""] = process.argv.slice(2);

connect(socket)
  .on("error", () => process.exit(1))
  .on("close", () => process.exit(1));
