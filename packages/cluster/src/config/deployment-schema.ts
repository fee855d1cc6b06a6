import { z } from "zod";
import { gatewaySchema } from "@octavo/gateway/parts";
import { autoscalingSchema } from "../autoscaling/autoscaling-config.js";
import { sloSchema } from "../autoscaling/slo-policy.js";

const name = z.string().regex(/^[\w.-]{1,64}$/, "expected 1 to 64 letters, digits and any of `_.-`");
const flagValue = z.union([
  z.string(),
  z.number(),
  z.boolean(),
  z.array(z.union([z.string(), z.number()])).min(1),
]);

/** Settings of routes that a deployment may choose; the others follow from it. */
const routing = z.strictObject({
  strategy: z.string().default("power_of_two"),
  prefix: z.unknown().optional(),
  affinity: z.unknown().optional(),
  timeouts: z.unknown().optional(),
  /** Attempts of one call altogether: a replica that dies costs one. */
  attempts: z.int().min(1).max(16).default(6),
});

/** A deployment in Ray Serve's words, with its defaults; the model's in those of its LLM API. */
export const deploymentSchema = z
  .strictObject({
    name,
    model_loading_config: z.strictObject({
      /** What clients call it. */
      model_id: z.string().min(1).max(128),
      /** Folder, .gguf file or Hugging Face id; without it the embedded octavo-mini. */
      model_source: z.string().min(1).optional(),
    }),
    /** Options of `octavo serve`, with underscores. */
    engine_kwargs: z.record(z.string(), flagValue).default({}),
    num_replicas: z.union([z.int().min(0).max(10_000), z.literal("auto")]).optional(),
    autoscaling_config: autoscalingSchema.optional(),
    /** Scales by the wait that is predicted, not by Ray's rule. */
    slo_policy: sloSchema.optional(),
    /** Calls that a replica has at one time; others wait in the gateway. */
    max_ongoing_requests: z.int().min(1).default(5),
    /** Calls that may wait; further ones are answered 503. -1 is no limit. */
    max_queued_requests: z.int().min(-1).default(-1),
    graceful_shutdown_timeout_s: z.number().min(0).default(20),
    health_check_period_s: z.number().gt(0).default(10),
    health_check_timeout_s: z.number().gt(0).default(30),
    /** What a new replica may spend on prefixes that are hot at the others before it takes calls; 0 is nothing. */
    prefix_warm_up_timeout_s: z.number().min(0).max(600).default(2),
    /** A replica that is not healthy by then is replaced. */
    startup_timeout_s: z.number().gt(0).default(600),
    ray_actor_options: z
      .strictObject({
        /** Cores of each replica; 0 pins it to none. */
        num_cpus: z.int().min(0).default(1),
        /** Bytes of each replica. */
        memory: z.number().min(0).optional(),
      })
      .prefault({}),
    /** What a replica's logits must hash to; without it those of the first one admitted. */
    expected_fingerprint: z.string().min(1).optional(),
    routing: routing.prefault({}),
  })
  .superRefine((deployment, context) => {
    if (typeof deployment.num_replicas === "number" && deployment.autoscaling_config !== undefined)
      context.addIssue({
        code: "custom",
        path: ["num_replicas"],
        message: 'a number and autoscaling_config contradict each other; leave one out, or write "auto"',
      });
  })
  .transform((deployment) => ({ ...deployment, autoscaling: autoscalingOf(deployment) }));

/** What Ray Serve assumes for `num_replicas: auto`. */
const autoDefaults = { min_replicas: 1, max_replicas: 100, target_ongoing_requests: 2 };

/** A fixed number is an autoscaler without room. */
function autoscalingOf({
  num_replicas,
  autoscaling_config,
}: {
  readonly num_replicas?: number | "auto" | undefined;
  readonly autoscaling_config?: z.output<typeof autoscalingSchema> | undefined;
}): z.output<typeof autoscalingSchema> {
  if (num_replicas === "auto") return autoscaling_config ?? autoscalingSchema.parse(autoDefaults);
  if (autoscaling_config !== undefined) return autoscaling_config;
  const fixed = num_replicas ?? 1;
  return {
    ...autoscalingSchema.parse({ min_replicas: fixed, max_replicas: Math.max(1, fixed) }),
    max_replicas: fixed,
  };
}

export type DeploymentConfig = z.output<typeof deploymentSchema>;

const localDriver = z.strictObject({
  kind: z.literal("local"),
  /** Cores that replicas may be pinned to, as taskset writes them; without it all of this process's. */
  cores: z
    .string()
    .regex(/^\d+(-\d+)?(,\d+(-\d+)?)*$/, "expected cores such as 0-3,6")
    .optional(),
  /** What replicas print: `stderr`, `off`, or a file. */
  log: z.string().min(1).default("stderr"),
  /** Keeps a process that has read Octavo's modules, so that the next replica starts sooner. */
  standby_process: z.boolean().default(true),
});

const httpUrl = z.url({ protocol: /^https?$/ });

const rayDriver = z.strictObject({
  kind: z.literal("ray"),
  /** Of the head. */
  dashboard: httpUrl.default("http://127.0.0.1:8265"),
  /** Of Serve's proxy on the head, where it is not the dashboard's host and Serve's port. */
  proxy: httpUrl.optional(),
  /** Serve's, if it does not run yet. */
  http_port: z.int().min(1).max(65_535).default(8000),
  /** What starts Octavo on Ray's nodes. */
  command: z.array(z.string().min(1)).min(1).default(["octavo"]),
  poll_interval_s: z.number().gt(0).default(0.5),
});

const kubernetesDriver = z.strictObject({
  kind: z.literal("kubernetes"),
  /** Without it the one of the service account or of the kubeconfig's context. */
  namespace: z.string().min(1).optional(),
  /** Without it the service account's inside a cluster, `KUBECONFIG` or ~/.kube/config outside. */
  kubeconfig: z.string().min(1).optional(),
  context: z.string().min(1).optional(),
  /** Names of a deployment's Deployment and Service, which are the same, where they are not its own name. */
  objects: z.record(z.string(), z.string().min(1)).default({}),
  /** In an update, how long a pod is ready before it replaces another: enough to find out whether it is like the others. */
  min_ready_seconds: z.int().min(1).default(10),
  /** OCTAVO_REPLICA_KEY of the pods, by which they let the cluster read and fill their prefix caches; without it new ones start cold. */
  replica_key: z.string().min(16, "expected 16 characters or more").optional(),
  poll_interval_s: z.number().gt(0).default(1),
});

/** A kind alone is that driver with its defaults. */
const driver = z
  .preprocess(
    (value) => (typeof value === "string" ? { kind: value } : value),
    z.discriminatedUnion("kind", [localDriver, rayDriver, kubernetesDriver]),
  )
  .prefault("local");

export const clusterSchema = z.strictObject({
  version: z.literal(1),
  driver,
  deployments: z.array(deploymentSchema).min(1),
  /** gateway.yaml without `version`; `targets` and `routes` beside the deployments' are allowed. */
  gateway: z.record(z.string(), z.unknown()).default({}),
});

export type ClusterSections = z.output<typeof clusterSchema>;
export type LocalDriverConfig = z.output<typeof localDriver>;
export type RayDriverConfig = z.output<typeof rayDriver>;
export type KubernetesDriverConfig = z.output<typeof kubernetesDriver>;

/** The settings of one member of a deployment's pool. */
export function targetConfigOf(deployment: DeploymentConfig, url: string) {
  const parsed = gatewaySchema.shape.targets.parse({
    replica: {
      provider: "octavo",
      url,
      models: [deployment.model_loading_config.model_id],
      max_outstanding: deployment.max_ongoing_requests,
      // the controller asks for its health, with Ray's period and timeout
      probe: { path: "off" },
    },
  });
  return parsed["replica"];
}
