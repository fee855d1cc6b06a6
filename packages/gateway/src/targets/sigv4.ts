import { createHash, createHmac } from "node:crypto";

export interface AwsKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
}

export interface SignedRequest {
  readonly host: string;
  /** As it is sent, with its query; segments are encoded once already. */
  readonly path: string;
  readonly body: string | Buffer;
  readonly region: string;
  readonly service: string;
  readonly nowMs: number;
}

/** Headers of a POST with a JSON body, signed as AWS' Signature Version 4 says. */
export function signAws(key: AwsKey, request: SignedRequest): Readonly<Record<string, string>> {
  const time = new Date(request.nowMs).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const day = time.slice(0, 8);
  const headers: Record<string, string> = {
    "content-type": "application/json",
    host: request.host,
    "x-amz-date": time,
    ...(key.sessionToken === undefined ? {} : { "x-amz-security-token": key.sessionToken }),
  };
  const names = Object.keys(headers).toSorted();
  const [path = "/", query = ""] = request.path.split("?");
  const canonical = [
    "POST",
    // each segment is encoded once more, for all services but S3
    path.split("/").map(encodeSegment).join("/"),
    query,
    ...names.map((name) => `${name}:${headers[name] ?? ""}`),
    "",
    names.join(";"),
    sha256(request.body),
  ].join("\n");
  const scope = `${day}/${request.region}/${request.service}/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  let signingKey: string | Buffer = `AWS4${key.secretAccessKey}`;
  for (const part of [day, request.region, request.service, "aws4_request"])
    signingKey = hmac(signingKey, part);
  const signature = hmac(signingKey, toSign).toString("hex");
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${key.accessKeyId}/${scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`,
  };
}

/** `access:secret` or `access:secret:session`, as gateway.yaml has it. */
export function parseAwsKey(text: string): AwsKey | undefined {
  const [accessKeyId = "", secretAccessKey = "", ...session] = text.split(":");
  if (accessKeyId === "" || secretAccessKey === "") return undefined;
  return { accessKeyId, secretAccessKey, sessionToken: session.length === 0 ? undefined : session.join(":") };
}

function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replaceAll(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
