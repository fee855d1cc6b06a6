import { escapeHtml } from "../escape.js";

export interface ChartFrame {
  readonly title: string;
  readonly width: number;
  readonly height: number;
  /** `list` where its groups are items that take the focus, `img` with a `label` where it is one picture. */
  readonly role: "list" | "img";
  readonly label?: string;
  /** SVG. */
  readonly content: string;
  /** The same for screens of a telephone, where there is such a drawing; the other is not shown there. */
  readonly narrow?: Pick<ChartFrame, "width" | "height" | "content">;
  readonly caption?: string | undefined;
  /** HTML below the picture, such as the keys of its lines. */
  readonly below?: string;
}

/** A picture with its title; wide ones scroll within their own box. */
export function chartFrame({
  title,
  width,
  height,
  role,
  label,
  content,
  narrow,
  caption,
  below = "",
}: ChartFrame): string {
  const aria = escapeHtml(label === undefined ? title : `${title}: ${label}`);
  const note = caption === undefined ? "" : `<p class="note">${escapeHtml(caption)}</p>`;
  const svg = (drawing: Pick<ChartFrame, "width" | "height" | "content">, className: string): string =>
    `<svg${className} viewBox="0 0 ${drawing.width} ${Math.ceil(drawing.height)}" width="${drawing.width}" role="${role}" aria-label="${aria}">${drawing.content}</svg>`;
  const drawn =
    narrow === undefined
      ? svg({ width, height, content }, "")
      : svg({ width, height, content }, ' class="wide"') + svg(narrow, ' class="narrow"');
  return (
    `<figure><figcaption>${escapeHtml(title)}</figcaption><div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(title)}">` +
    `${drawn}</div>${below}${note}</figure>`
  );
}

/** An item of a chart of role `list`: takes the keyboard's focus and says its figures. */
export function focusRow(className: string, label: string, content: string): string {
  const said = escapeHtml(label);
  return `<g class="${className}" tabindex="0" role="listitem" aria-label="${said}"><title>${said}</title>${content}</g>`;
}
