// A gateway that says, when its parent asks, what it holds at that moment: memory after a collection, sockets, timers, calls,
// reservations and places. Takes the path of gateway.yaml; needs --expose-gc.
import { Gateway, GatewayListener, readGatewayFile } from "@octavo/gateway";
import type { Holdings } from "./holdings.js";

const config = await readGatewayFile(process.argv[2] ?? "", process.env);
const gateway = await Gateway.open({ config });
const listener = new GatewayListener(gateway, config.limits);
const { url } = await listener.listen("127.0.0.1", 0);

interface BudgetReport {
  readonly budgets: readonly { readonly here: { readonly reserved: number } }[];
}

async function holdings(): Promise<Holdings> {
  // what was closed is told to its owners on the next turns
  await new Promise((resolve) => setTimeout(resolve, 50));
  for (let times = 0; times < 3; times += 1) globalThis.gc?.();
  const routes = gateway.runtime.stages.flatMap(({ stage }) => stage.adminRoutes ?? []);
  const budgets = routes.find(({ path }) => path === "budgets");
  const report = await budgets?.handle({ values: [], query: new URLSearchParams(), body: undefined });
  const resources = process.getActiveResourcesInfo();
  const count = (kind: string): number => resources.filter((resource) => resource === kind).length;
  return {
    heapMiB: process.memoryUsage().heapUsed / 2 ** 20,
    residentMiB: process.memoryUsage.rss() / 2 ** 20,
    sockets: count("TCPSocketWrap"),
    timers: count("Timeout"),
    calls: gateway.numOpen,
    outstanding: [...gateway.runtime.targets.values()].reduce((sum, target) => sum + target.outstanding, 0),
    reserved: ((report as BudgetReport | undefined)?.budgets ?? []).reduce(
      (sum, { here }) => sum + here.reserved,
      0,
    ),
  };
}

process.on("message", () => void holdings().then((held) => process.send?.(held)));
process.on("disconnect", () => process.exit(0));
process.send?.(url);
