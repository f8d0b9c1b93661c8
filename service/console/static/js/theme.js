// Light and dark: as the system says, unless the reader says otherwise.

const NAME = "lance-serve.theme";
const AUTO = "auto";

/** Applies the choice in a select, and keeps it. */
export function followTheme(select) {
  select.value = localStorage.getItem(NAME) ?? AUTO;
  const apply = () => {
    if (select.value === AUTO) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = select.value;
  };
  select.addEventListener("change", () => {
    localStorage.setItem(NAME, select.value);
    apply();
  });
  apply();
}
