import { readFileSync } from "node:fs";
import { fixtureImage } from "@octavo/artifacts/testing/model-fixtures";

export const imageBytesOf = (name: string): Buffer => readFileSync(fixtureImage(name));
export const urlOf = (name: string, type = "image/png"): string =>
  `data:${type};base64,${imageBytesOf(name).toString("base64")}`;
export const imagePart = (url: string) => ({ type: "image_url" as const, image_url: { url } });
export const wordsPart = (text: string) => ({ type: "text" as const, text });
export const photo = imagePart(urlOf("photo.jpg", "image/jpeg"));
export const colours = imagePart(urlOf("colours.png"));
