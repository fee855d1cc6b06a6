import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { OctavoError } from "@octavo/protocol/errors";
import { readStageKey } from "./handshake.js";
import { createStageServer } from "./stage-server.js";

export interface ServeStagesOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly keyFile: string;
  /** Who came with another key, or none. */
  readonly onRefused?: (address: string) => void;
}

/** Stages of models for servers on other hosts that have the key. Throws `invalid_option`. */
export async function serveStages({ host, port, keyFile, onRefused }: ServeStagesOptions) {
  const server = createStageServer({ key: readStageKey(keyFile), onRefused });
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new OctavoError("invalid_option", `cannot listen on ${host}:${port}: ${(cause as Error).message}`, {
      param: "host",
      cause,
    });
  }
  const { address, port: taken } = server.address() as AddressInfo;
  return {
    address: `${address.includes(":") ? `[${address}]` : address}:${taken}`,
    close: (): void => void server.close(),
  };
}
