import { stringify } from "yaml";
import { YamlSource } from "@octavo/protocol/yaml";
import { readGatewayConfig } from "../config/load-config.js";
import { GatewayListener } from "../http/gateway-listener.js";
import { Gateway } from "../operation/gateway.js";
import type { TargetPool } from "../routing/target-pool.js";

export interface TestGateway extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly url: string;
  post(
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<Response>;
}

/** gateway.yaml as an object, without what every test has. */
export function readTestConfig(config: object, pools: readonly string[] = []) {
  const text = stringify({ version: 1, access_log: "off", ...config });
  const source = new YamlSource("gateway.yaml", text);
  return readGatewayConfig(source, source.value, pools);
}

/** A gateway on a free port. */
export async function startTestGateway(config: object, pool?: TargetPool): Promise<TestGateway> {
  const read = readTestConfig(config, pool === undefined ? [] : [pool.name]);
  const pools = new Map(pool === undefined ? [] : [[pool.name, pool]]);
  const gateway = await Gateway.open({ config: read, pools });
  const listener = new GatewayListener(gateway, read.limits);
  const { url } = await listener.listen("127.0.0.1", 0);
  return {
    gateway,
    url,
    post: (path, body, headers = {}, signal) =>
      fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...(signal !== undefined && { signal }),
      }),
    async [Symbol.asyncDispose]() {
      await gateway.drain(0);
      await listener.close();
      await gateway.close();
    },
  };
}

export const sampleBody = { model: "m", messages: [{ role: "user", content: "hello" }] };
