import { stringify } from "yaml";
import { loadGatewayConfig } from "../config/load-config.js";
import { GatewayListener } from "../http/gateway-listener.js";
import { Gateway } from "../operation/gateway.js";

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
export function readTestConfig(config: object) {
  const text = stringify({ version: 1, access_log: "off", ...config });
  return loadGatewayConfig({ name: "gateway.yaml", text, environment: {} });
}

/** A gateway on a free port. */
export async function startTestGateway(config: object): Promise<TestGateway> {
  const read = readTestConfig(config);
  const gateway = await Gateway.open({ config: read });
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
