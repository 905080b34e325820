//! The pages for people: a list of the plans, which can be searched, and a page for each plan.

use crate::app::{App, Search};
use crate::error::RequestError;
use crate::extract::{Path, Query};
use crate::plan::{DataProduct, Dependency, Plan, State};
use crate::store::{FoundPlan, PAGE_SIZE};
use axum::Router;
use axum::extract;
use axum::response::Html;
use axum::routing::get;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use uuid::Uuid;

type Page = Result<Html<String>, RequestError>;

/// All endpoints of this module.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(index))
        .route("/component/plan_search", get(plan_search))
        .route("/plan/{dataset}", get(plan))
}

/// The plans that last changed, and a field to search for others.
async fn index(extract::State(app): extract::State<App>) -> Page {
    let search = Search { search_by: String::new(), page: 0 };
    let found = app.find_plans(&search).await?;
    let body = html! {
        label { "Search " input type="search" name="search_by" placeholder="a dataset or its notes"; }
        div id="plans" { (plans(&found, search.page)) }
        script { (PreEscaped(include_str!("pages/search.js"))) }
    };
    Ok(page("Plans", &body))
}

/// The part of that page which a search replaces.
async fn plan_search(extract::State(app): extract::State<App>, Query(search): Query<Search>) -> Page {
    let found = app.find_plans(&search).await?;
    Ok(Html(plans(&found, search.page).into_string()))
}

async fn plan(extract::State(app): extract::State<App>, Path(dataset): Path<Uuid>) -> Page {
    let plan = app.plan(dataset).await?;
    let body = html! {
        p { a href="/" { "All plans" } }
        (summary(&plan))
        h2 { "Data products" }
        (data_products(&plan))
        h2 { "Dependencies" }
        (dependencies(&plan.dependencies))
    };
    Ok(page(&format!("Plan {dataset}"), &body))
}

fn page(title: &str, body: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) " - Planner" }
                style { (PreEscaped(include_str!("pages/style.css"))) }
            }
            body {
                h1 { (title) }
                (body)
            }
        }
    };
    Html(page.into_string())
}

fn plans(found: &[FoundPlan], page: u32) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { "Dataset" } th { "Notes" } th { "Made" } th { "Dependencies" } th { "Changed (UTC)" }
                    th { "Paused" }
                }
            }
            tbody {
                @for plan in found { (found_plan(plan)) }
                @if found.is_empty() { tr { td colspan="6" { "No plan is here." } } }
            }
        }
        p {
            @if page > 0 { button type="button" data-page=(page - 1) { "Back" } }
            " Page " (page) " "
            @if found.len() == PAGE_SIZE { button type="button" data-page=(page.saturating_add(1)) { "On" } }
        }
    }
}

fn found_plan(plan: &FoundPlan) -> Markup {
    html! {
        tr {
            td { a href={ "/plan/" (plan.dataset.id) } { (plan.dataset.id) } }
            td { (notes(plan.dataset.extra.as_ref())) }
            td class="number" { (plan.successful) " of " (plan.data_products) }
            td class="number" { (plan.dependencies) }
            td { (plan.modified) }
            td { (paused(plan.dataset.paused)) }
        }
    }
}

fn summary(plan: &Plan) -> Markup {
    let made = plan.data_products.iter().filter(|product| product.state == State::Success).count();
    html! {
        dl {
            dt { "Notes" } dd { (notes(plan.dataset.extra.as_ref())) }
            dt { "Paused" } dd { (paused(plan.dataset.paused)) }
            dt { "Made" } dd { (made) " of " (plan.data_products.len()) @if plan.is_done() { ", done" } }
        }
    }
}

fn data_products(plan: &Plan) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { "Product" } th { "Name" } th { "Version" } th { "Compute" } th { "Starts" } th { "State" }
                    th { "Needs" } th { "Run" } th { "Handed in" } th { "Handed back" } th { "Notes" }
                }
            }
            tbody { @for product in &plan.data_products { (data_product(plan, product)) } }
        }
    }
}

fn data_product(plan: &Plan, product: &DataProduct) -> Markup {
    let needs = plan.dependencies.iter().filter(|dependency| dependency.child_id == product.id);
    html! {
        tr {
            td { (product.id) }
            td { (product.name) }
            td { (product.version) }
            td { (product.compute.as_str()) }
            td { @if product.eager { "by itself" } @else { "by hand" } }
            td class=(product.state) { (product.state) }
            td { @for Dependency { parent_id, .. } in needs { (parent_id) " " } }
            td { (run(product)) }
            td { (notes(product.passthrough.as_ref())) }
            td { (notes(product.passback.as_ref())) }
            td { (notes(product.extra.as_ref())) }
        }
    }
}

fn run(product: &DataProduct) -> Markup {
    html! {
        @if let Some(run) = product.run_id { (run) " " }
        @match &product.link {
            // Anything else, such as `javascript:`, is no place to look at a run.
            Some(link) if link.starts_with("http://") || link.starts_with("https://") => a href=(link) { "log" },
            Some(link) => (link),
            None => {},
        }
    }
}

fn dependencies(dependencies: &[Dependency]) -> Markup {
    html! {
        table {
            thead { tr { th { "Product" } th { "Is needed for" } th { "Notes" } } }
            tbody {
                @for Dependency { parent_id, child_id, extra } in dependencies {
                    tr { td { (parent_id) } td { (child_id) } td { (notes(extra.as_ref())) } }
                }
            }
        }
    }
}

/// JSON as people read it: a text without its quotes.
fn notes(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn paused(paused: bool) -> &'static str {
    if paused { "paused" } else { "" }
}
