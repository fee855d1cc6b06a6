/** A pipeline stage in a process of its own, on the socket that the arguments name; it ends with the connection or with its parent. */
import { createStageServer } from "./stage-server.js";

const [, , socket] = process.argv;
const server = createStageServer({ onClose: () => process.exit(0) });
server.listen(socket, () => process.send?.("listening"));
process.on("disconnect", () => process.exit(0));
