import { createServer } from "node:net";
import { OctavoError } from "@octavo/protocol/errors";

/** Throws `invalid_option` where nothing can listen, before a model is loaded for it. */
export async function checkAddress({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (cause: NodeJS.ErrnoException) => {
      const reason = cause.code === "EADDRINUSE" ? "the port is in use" : cause.message;
      reject(
        new OctavoError("invalid_option", `cannot listen on ${host}:${port}: ${reason}`, {
          param: "port",
          cause,
        }),
      );
    });
    probe.listen(port, host, () => probe.close(() => resolve()));
  });
}
