import type { AdminRoute, TargetPool } from "@octavo/gateway/parts";
import { OctavoError } from "@octavo/protocol";
import type { DeploymentController } from "../controller/deployment-controller.js";

/** What the admin port says of the cluster, and the fingerprints on demand. */
export function clusterRoutes(
  controllers: readonly DeploymentController[],
  pools: ReadonlyMap<string, TargetPool>,
): readonly AdminRoute[] {
  return [
    {
      method: "GET",
      path: "cluster",
      handle: () => ({ deployments: controllers.map((one) => stateOf(one, pools.get(one.name))) }),
    },
    {
      method: "POST",
      path: "cluster/*/verify",
      async handle({ values: [name] }) {
        const found = controllers.find((one) => one.name === name);
        if (found === undefined) throw new OctavoError("not_found", `There is no deployment ${name ?? ""}.`);
        return { replicas: await found.verify() };
      },
    },
  ];
}

function stateOf(controller: DeploymentController, pool: TargetPool | undefined): object {
  return {
    name: controller.name,
    target_replicas: controller.target,
    queued: pool?.numQueued ?? 0,
    driver_reachable: controller.isReachable,
    replicas: controller.replicas.map(({ id, state, url, version }) => {
      const member = pool?.member(id);
      return {
        id,
        state: member === undefined && state === "running" ? "starting" : state,
        url,
        version,
        ongoing: member?.outstanding ?? 0,
        outstanding_tokens: member?.outstandingTokens ?? 0,
        identity: controller.identityOf(id),
      };
    }),
    rejected: Object.fromEntries(controller.rejected),
  };
}
