import { invalidField, unsupportedField } from "@octavo/protocol/refusal";

/** What a request names and the server fetches. */
export interface MediaUrl {
  readonly url: URL;
  /** The field that names it. */
  readonly param: string;
}

/**
 * A URL that the operator allows. It is parsed once, here: what is checked is what is connected to. So an IPv4 address is one,
 * however it is written.
 * @param hosts with its port, where that is not the scheme's own
 * @throws OctavoError `unsupported_parameter`, `invalid_request`
 */
export function allowedMediaUrl(text: string, hosts: readonly string[], param: string): MediaUrl {
  if (hosts.length === 0) {
    const scheme = /^[a-z][a-z0-9+.-]{0,20}:/i.exec(text)?.[0];
    throw unsupportedField(
      param,
      `the server fetches nothing (${scheme}); send a data URL: data:image/png;base64,...`,
    );
  }
  if (text.length > maxLength || !URL.canParse(text))
    throw invalidField(param, `not a URL of up to ${maxLength} characters`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw unsupportedField(param, `the server fetches http and https alone, not ${url.protocol}`);
  if (url.username !== "" || url.password !== "")
    throw invalidField(param, "a URL with a name or password is not fetched");
  if (!hosts.some((host) => host.toLowerCase() === url.host))
    throw unsupportedField(
      param,
      `the server fetches nothing from ${url.host}; its operator can allow that (--allowed-media-domains)`,
    );
  return { url, param };
}

const maxLength = 4096;
