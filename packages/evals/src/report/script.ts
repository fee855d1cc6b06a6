/** The page's script, as it stands in the page. Without it all cases are listed. */
export const script = `
const root = document.documentElement;
const button = document.querySelector("button.theme");
button.hidden = false;
button.addEventListener("click", () => {
  const dark = root.style.colorScheme === "" ? matchMedia("(prefers-color-scheme: dark)").matches : root.style.colorScheme === "dark";
  root.style.colorScheme = dark ? "light" : "dark";
});
const form = document.querySelector("form.filter");
if (form) {
  form.hidden = false;
  const cases = [...document.querySelectorAll(".cases > details")];
  const texts = new Map();
  const textOf = (item) => {
    if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
    return texts.get(item);
  };
  const apply = () => {
    const wanted = form.elements.text.value.trim().toLowerCase();
    const state = form.elements.state.value;
    let shown = 0;
    for (const item of cases) {
      const fits = (state === "" || item.dataset.state === state) && (wanted === "" || textOf(item).includes(wanted));
      item.hidden = !fits;
      if (fits) shown += 1;
    }
    form.querySelector("output").textContent = shown === cases.length ? "" : shown + " of " + cases.length + " cases";
  };
  let waiting;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
}
`;
