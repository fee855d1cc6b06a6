import { once } from "node:events";
import { createServer } from "node:net";
import { OctavoError } from "./errors.js";

/** A free port of this machine. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port!;
}

/** So many, no two the same: each is held until all are known. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
  );
  return await Promise.all(
    servers.map(async (server) => {
      const address = server.address();
      server.close();
      await once(server, "close");
      if (address === null || typeof address === "string")
        throw new OctavoError("internal_error", "the machine gave no port");
      return address.port;
    }),
  );
}
