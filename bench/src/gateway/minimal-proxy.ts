// The least that a proxy on Node can do: bytes in and out over node:http and undici, nothing read. What a gateway takes beyond
// it is the gateway's own. Takes the port of the target, prints its own.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";

const pool = new Pool(`http://127.0.0.1:${process.argv[2] ?? ""}`, { connections: 256, pipelining: 1 });

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    pool.dispatch(
      {
        path: request.url ?? "/",
        method: "POST",
        headers: { "content-type": "application/json" },
        body: Buffer.concat(chunks),
      },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_, status, headers) => {
          response.writeHead(status, { "content-type": headers["content-type"]?.toString() ?? "" });
        },
        onResponseData: (_, chunk) => void response.write(chunk),
        onResponseEnd: () => void response.end(),
        onResponseError: () => void response.destroy(),
      },
    );
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
