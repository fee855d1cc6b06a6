import { styleText } from "node:util";
import { isCapable } from "@octavo/artifacts/hub/progress-bar";

type Style = Parameters<typeof styleText>[0];

/** Colours for people: on a terminal that has them, unless NO_COLOR is set. */
export function styleFor(stream: { readonly isTTY?: boolean }) {
  const isStyled = isCapable(stream) && !process.env["NO_COLOR"];
  const styled =
    (format: Style) =>
    (text: string): string =>
      isStyled ? styleText(format, text, { validateStream: false }) : text;
  return {
    bold: styled("bold"),
    dim: styled("dim"),
    good: styled("green"),
    bad: styled("red"),
    warning: styled("yellow"),
  };
}

/** Styles for standard error. */
export const style = styleFor(process.stderr);
