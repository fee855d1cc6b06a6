/** Absolute links of a text, Markdown's and bare ones, each once, without the marks of the sentence around them. */
export function linksIn(text: string): string[] {
  const found = Array.from(
    text.matchAll(/(?<![\p{L}\p{N}])(?:https?|ftp):\/\/[^\s<>"`|\\^{}]{1,2000}/giu),
    ([link]) => trimmed(link),
  );
  return [...new Set(found)];
}

/** A closing bracket belongs to the link only where it was opened in it. */
function trimmed(link: string): string {
  const left = new Map([")", "]"].map((closing) => [closing, countOf(link, closing)]));
  let end = link.length;
  for (; end > 0; end--) {
    const last = link[end - 1]!;
    const closings = left.get(last);
    if (closings !== undefined) {
      // every opening one stands before what is trimmed
      if (countOf(link, last === ")" ? "(" : "[") >= closings) break;
      left.set(last, closings - 1);
    } else if (!/[.,;:!?'"*_]/.test(last)) break;
  }
  return link.slice(0, end);
}

function countOf(text: string, character: string): number {
  return text.split(character).length - 1;
}

/** Whether a link could be followed: it parses, and its host is a name with a dot, an address or localhost. */
export function isValidLink(link: string): boolean {
  if (!URL.canParse(link)) return false;
  const { protocol, hostname } = new URL(link);
  if (protocol !== "http:" && protocol !== "https:") return false;
  if (hostname === "localhost" || hostname.startsWith("[")) return true;
  const labels = hostname.split(".");
  return (
    hostname.length <= 253 &&
    labels.length > 1 &&
    labels.every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label))
  );
}

/** Whether a host is one of these, or below one that is written `*.example.com`. */
export function isAllowedHost(link: string, hosts: readonly string[]): boolean {
  const { hostname } = new URL(link);
  return hosts.some((host) => {
    const name = host.toLowerCase();
    return name.startsWith("*.") ? hostname.endsWith(name.slice(1)) : hostname === name;
  });
}
