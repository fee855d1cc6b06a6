import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import type { ServerConfig } from "../config.js";

/** What `node:https` takes. */
export interface TlsMaterial {
  readonly key: Buffer;
  readonly cert: Buffer;
  readonly ca?: Buffer;
  readonly ciphers?: string;
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
}

type TlsFiles = Pick<
  ServerConfig,
  "sslKeyfile" | "sslCertfile" | "sslCaCerts" | "sslCertReqs" | "sslCiphers"
>;

/** The files as they are now; undefined where the server speaks plain HTTP. Throws `invalid_option` for what is no pair of key and certificate. */
export function readTls({
  sslKeyfile,
  sslCertfile,
  sslCaCerts,
  sslCertReqs,
  sslCiphers,
}: TlsFiles): TlsMaterial | undefined {
  if (sslKeyfile === undefined && sslCertfile === undefined) {
    if (sslCaCerts !== undefined || sslCiphers !== undefined || sslCertReqs > 0)
      throw invalid("ssl_certfile", "is needed with the other --ssl flags");
    return undefined;
  }
  if (sslKeyfile === undefined) throw invalid("ssl_keyfile", "is needed with --ssl-certfile");
  if (sslCertfile === undefined) throw invalid("ssl_certfile", "is needed with --ssl-keyfile");
  if (sslCertReqs > 0 && sslCaCerts === undefined)
    throw invalid("ssl_ca_certs", "is needed to check the certificates of clients");
  const material = {
    key: read("ssl_keyfile", sslKeyfile),
    cert: read("ssl_certfile", sslCertfile),
    ...(sslCaCerts !== undefined && { ca: read("ssl_ca_certs", sslCaCerts) }),
    ...(sslCiphers !== undefined && { ciphers: sslCiphers }),
    requestCert: sslCertReqs > 0,
    rejectUnauthorized: sslCertReqs === 2,
  };
  try {
    createSecureContext(material);
  } catch (cause) {
    throw new OctavoError(
      "invalid_option",
      `${sslCertfile} and ${sslKeyfile} are no certificate and its key (${OctavoError.from(cause).message})`,
      { param: "ssl_certfile", cause },
    );
  }
  return material;
}

function read(param: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw invalid(param, `${path} cannot be read: ${systemProblem(cause)}`, cause);
  }
}

function invalid(param: string, problem: string, cause?: unknown): OctavoError {
  return new OctavoError("invalid_option", `${param}: ${problem}`, { param, cause });
}
