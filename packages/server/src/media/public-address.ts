import { BlockList, isIPv4, isIPv6 } from "node:net";

/** IANA's special-purpose registry, multicast, and what clouds put among public addresses. */
const notPublicIPv4 = blockList("ipv4", [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
  // Azure's own services, of each of its machines
  ["168.63.129.16", 32],
]);

/** All that is routed to one machine; so neither mapped IPv4, nor NAT64, local, link-local and multicast addresses. */
const unicastIPv6 = blockList("ipv6", [["2000::", 3]]);
/** Of those: protocol assignments with Teredo, documentation, 6to4. */
const notPublicIPv6 = blockList("ipv6", [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
]);

/** Whether an IP address is anyone's to reach; false for all else. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !notPublicIPv4.check(address);
  return isIPv6(address) && unicastIPv6.check(address, "ipv6") && !notPublicIPv6.check(address, "ipv6");
}

function blockList(family: "ipv4" | "ipv6", subnets: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of subnets) list.addSubnet(network, prefix, family);
  return list;
}
