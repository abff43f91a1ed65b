import { connect } from "node:net";

/** What external-attacher and its like do: connect to the driver's socket, and end when no process serves it. */
const [socket = ""] = process.argv.slice(2);

connect(socket)
  .on("error", () => process.exit(1))
  .on("close", () => process.exit(1));
