import { execFileSync } from "node:child_process";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ControlPlane } from "./control-plane.js";
import { podReplicaKey } from "./fake-kubernetes.js";
import { fakeReplicaCommand } from "./test-specs.js";

/**
 * A folder with `etcd`, `kube-apiserver` and `kube-controller-manager`, as released or as Go builds them (`go.etcd.io/etcd/server/v3` and
 * `k8s.io/kubernetes/cmd/...` in a module that replaces the staging modules by their releases), and one with `bin/helm`. Pods need
 * addresses that are not loopback ones; in a network of its own the test has them:
 * `unshare --net --map-root-user sh -c 'ip link set lo up; ip addr add 10.201.0.1/24 dev lo; ...'`.
 */
const { KUBERNETES_CONTROL_PLANE: binaries, KUBERNETES_TOOLS: tools } = process.env;
const network = "10.201.0";
const hasNetwork = Object.values(networkInterfaces())
  .flat()
  .some((one) => one?.address === `${network}.1`);

/** Why no control plane can be started here; false where one can. */
export const cannotStart =
  binaries === undefined || tools === undefined
    ? "KUBERNETES_CONTROL_PLANE and KUBERNETES_TOOLS name no folders with a control plane and Helm"
    : hasNetwork
      ? false
      : `this machine has no addresses ${network}.*`;

/** The Deployment and Service that the chart makes of a release `fake`. */
export const chartedName = "fake-octavo";

/** A real control plane with a release of the charts: replicas as they are run, and the driver with the rights that the gateway's has. */
export async function startChartedCluster(): Promise<ControlPlane> {
  const secret = `apiVersion: v1
kind: Secret
metadata: { name: octavo-replicas }
stringData: { key: ${podReplicaKey} }
`;
  const secretKeyRef = { name: "octavo-replicas", key: "key" };
  const env = [{ name: "OCTAVO_REPLICA_KEY", valueFrom: { secretKeyRef } }];
  return ControlPlane.start({
    binaries: binaries ?? "",
    command: fakeReplicaCommand,
    network,
    user: "system:serviceaccount:default:gateway-octavo-gateway",
    manifests: [
      secret,
      chart("octavo", "fake", ["--set", "replicaCount=0", "--set-json", `env=${JSON.stringify(env)}`]),
      chart("octavo-gateway", "gateway", [
        "--set",
        "mode=cluster,replicaCount=1",
        "--show-only",
        "templates/access.yaml",
      ]),
    ],
  });
}

function chart(name: string, release: string, options: readonly string[]): string {
  const path = fileURLToPath(new URL(`../../../../deploy/helm/${name}`, import.meta.url));
  const args = ["template", release, path, "--namespace", "default", ...options];
  return execFileSync(join(tools ?? "", "bin/helm"), args, { encoding: "utf8" });
}
