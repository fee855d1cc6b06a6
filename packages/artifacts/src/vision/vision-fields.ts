import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { z } from "zod";

export const sizeField = z.number().int().min(1).max(65_536);
export const idField = z.number().int().min(0);

/** A tower's activation by its name in config.json. @throws OctavoError `artifact_unsupported` */
export function visionActivation<T>(path: string, name: string, known: Readonly<Record<string, T>>): T {
  const activation = known[name];
  if (activation !== undefined) return activation;
  throw artifactUnsupported(path, `has the vision activation ${JSON.stringify(name.slice(0, 100))}`);
}

/** @throws OctavoError `artifact_unsupported` */
export function checkChannels(path: string, numChannels: number): void {
  if (numChannels !== 3) throw artifactUnsupported(path, `has images of ${numChannels} channels`);
}

/** Refuses ids of images' tokens that a text cannot have. @throws OctavoError `artifact_unsupported` */
export function checkTokenIds(path: string, ids: Readonly<Record<string, number>>, vocabSize: number): void {
  for (const [name, token] of Object.entries(ids))
    if (token >= vocabSize)
      throw artifactUnsupported(path, `has the ${name} ${token} outside the vocabulary`);
}
