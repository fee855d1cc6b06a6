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
  caption,
  below = "",
}: ChartFrame): string {
  const aria = escapeHtml(label === undefined ? title : `${title}: ${label}`);
  const note = caption === undefined ? "" : `<p class="note">${escapeHtml(caption)}</p>`;
  return (
    `<figure><figcaption>${escapeHtml(title)}</figcaption><div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(title)}">` +
    `<svg viewBox="0 0 ${width} ${Math.ceil(height)}" width="${width}" role="${role}" aria-label="${aria}">${content}</svg></div>${below}${note}</figure>`
  );
}

/** An item of a chart of role `list`: takes the keyboard's focus and says its figures. */
export function focusRow(className: string, label: string, content: string): string {
  const said = escapeHtml(label);
  return `<g class="${className}" tabindex="0" role="listitem" aria-label="${said}"><title>${said}</title>${content}</g>`;
}
