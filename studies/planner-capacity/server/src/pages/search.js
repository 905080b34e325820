const field = document.querySelector("[name=search_by]");
const plans = document.querySelector("#plans");

async function show(page) {
  const query = new URLSearchParams({ page, search_by: field.value });
  const response = await fetch("/component/plan_search?" + query);
  if (response.ok) plans.innerHTML = await response.text();
}

field.addEventListener("change", () => show(0));
plans.addEventListener("click", (event) => {
  if (event.target.dataset.page) show(event.target.dataset.page);
});
