import { basename } from "node:path";
import { type ClusterConfig, loadClusterConfig } from "@octavo/cluster";
import { type GatewayConfig, loadGatewayConfig } from "@octavo/gateway";
import {
  type ConfigPatch,
  type FixEvidence,
  patched,
  patchedFiles,
  proposeDeploymentFix,
  proposeFix,
  proposeGatewayFix,
  type ServeSettings,
  settingAt,
} from "@octavo/optimize";
import { asObject, asObjects } from "@octavo/protocol";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { YamlSource } from "@octavo/protocol/yaml";
import { kwargFlags } from "../commands/cluster.js";
import { readTextOf } from "../output/files.js";
import { serveFlags, settingsOf } from "./feed-files.js";

/** Files that fixes are changes of. */
export const fileRows = {
  config: option.text("--config <file>", "octavo serve's file of flags, which fixes are changes of", {
    defaultText: "its defaults",
  }),
  gateway: option.text("--gateway <file>", "gateway.yaml, for fixes of what its log shows"),
  cluster: option.text("--cluster <file>", "cluster.yaml, for fixes by replicas and routing"),
  deployment: option.text("--deployment <name>", "with --cluster: which one", { defaultText: "the first" }),
};

interface FileFlags {
  readonly config: string | undefined;
  readonly gateway: string | undefined;
  readonly cluster: string | undefined;
  readonly deployment: string | undefined;
}

interface ReadFile {
  readonly name: string;
  /** As it was written. */
  readonly value: unknown;
}

export interface PatchableFiles {
  readonly settings: ServeSettings;
  readonly gateway: ReadFile | undefined;
  readonly cluster: (ReadFile & { readonly deployment: string | undefined }) | undefined;
}

/** Throws `invalid_option` for a file that its own command would refuse. */
export async function readPatchable({
  config,
  gateway,
  cluster,
  deployment,
}: FileFlags): Promise<PatchableFiles> {
  const files = {
    settings: await settingsOf(config),
    gateway: gateway === undefined ? undefined : await readYaml("gateway", gateway),
    cluster: cluster === undefined ? undefined : { ...(await readYaml("cluster", cluster)), deployment },
  };
  if (files.gateway !== undefined) patchedGateway(files, {});
  if (files.cluster !== undefined) patchedDeployment(files, {});
  return files;
}

async function readYaml(param: string, path: string): Promise<ReadFile> {
  const name = basename(path);
  return { name, value: new YamlSource(name, await readTextOf(param, path)).value };
}

/**
 * The change to try first: of the gateway for what its log shows, of the deployment where one is given and more or other replicas answer
 * the cause, else of the server. Throws `internal_error` for a fix that its file's own reader refuses.
 */
export function fixOf(entry: FixEvidence, files: PatchableFiles): ConfigPatch | undefined {
  const fix =
    entry.kind === "gateway"
      ? files.gateway && proposeGatewayFix(entry, files.gateway.value)
      : ((files.cluster && proposeDeploymentFix(entry, sectionOf(files))) ??
        proposeFix(entry, files.settings));
  if (fix === undefined) return undefined;
  try {
    checkPatch(files, fix);
  } catch (cause) {
    const { message } = OctavoError.from(cause);
    throw new OctavoError("internal_error", `the fix of ${entry.cause} is refused: ${message}`, { cause });
  }
  return fix;
}

/** Throws `invalid_option` for a setting that the file's own reader refuses. */
export function checkPatch(files: PatchableFiles, { of, set }: Pick<ConfigPatch, "of" | "set">): void {
  if (of === "gateway") patchedGateway(files, set);
  else if (of === "deployment") patchedDeployment(files, set);
  else
    for (const name of Object.keys(set))
      if (!serveFlags.has(name))
        throw new OctavoError("invalid_option", `the patch sets ${name}, which octavo serve does not have`, {
          param: name,
        });
}

/** The file that a patch as a user gives it changes: pointers are into cluster.yaml's deployment where that is given, else gateway.yaml. */
export function patchedFileOf({ cluster }: PatchableFiles, set: ConfigPatch["set"]): ConfigPatch["of"] {
  const isPointers = Object.keys(set).map((name) => name.startsWith("/"));
  if (!isPointers.includes(true)) return "serve";
  if (isPointers.includes(false))
    throw new OctavoError(
      "invalid_option",
      "a patch changes one file: give options of octavo serve or pointers",
      {
        param: "set",
      },
    );
  return cluster === undefined ? "gateway" : "deployment";
}

/** gateway.yaml with a patch over it, as it is written and as it is read. Throws `invalid_option` where the gateway would refuse it. */
export function patchedGateway(
  { gateway }: Pick<PatchableFiles, "gateway">,
  set: ConfigPatch["set"],
): { readonly value: unknown; readonly config: GatewayConfig } {
  if (gateway === undefined) throw missing("gateway");
  const value = patched(gateway.value, set);
  const config = loadGatewayConfig({
    name: Object.keys(set).length === 0 ? gateway.name : `${gateway.name} with the patch`,
    text: JSON.stringify(value),
    environment: process.env,
  });
  return { value, config };
}

/** The deployment with a patch over its section. Throws `invalid_option` where the cluster would refuse it. */
export function patchedDeployment(
  { cluster }: PatchableFiles,
  set: ConfigPatch["set"],
): ClusterConfig["deployments"][number] {
  if (cluster === undefined) throw missing("deployment");
  const { name, value, deployment } = cluster;
  const sections = asObjects(settingAt(value, "/deployments"));
  const index =
    deployment === undefined ? 0 : sections.findIndex((section) => section["name"] === deployment);
  if (index < 0)
    throw new OctavoError("invalid_option", `${name} has no deployment ${deployment}`, {
      param: "deployment",
    });
  const root = asObject(value) ?? {};
  const deployments = sections.map((section, at) => (at === index ? patched(section, set) : section));
  const config = loadClusterConfig(
    {
      name: Object.keys(set).length === 0 ? name : `${name} with the patch`,
      text: JSON.stringify({ ...root, deployments }),
      environment: process.env,
    },
    kwargFlags(),
  );
  return config.deployments[index]!;
}

function sectionOf({ cluster }: PatchableFiles): unknown {
  const sections = asObjects(settingAt(cluster?.value, "/deployments"));
  const { deployment } = cluster ?? {};
  return deployment === undefined ? sections[0] : sections.find(({ name }) => name === deployment);
}

function missing(of: "gateway" | "deployment"): OctavoError {
  const flag = of === "gateway" ? "gateway" : "cluster";
  return new OctavoError("invalid_option", `the patch changes ${patchedFiles[of]}: give it with --${flag}`, {
    param: flag,
  });
}
