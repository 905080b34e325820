//! The plan of a dataset: which data products are made, from which others, and how far they are.
//!
//! Everything here is computed from the plan alone. The database and the requests are elsewhere.

mod product;
#[cfg(test)]
mod tests;

pub(crate) use product::{DataProduct, Dataset, Dependency, State, StateUpdate};

use petgraph::Direction::Incoming;
use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Dfs;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// A dataset with its data products and their dependencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The dataset that the plan is of.
    pub(crate) dataset: Dataset,
    /// The products, each with an id of its own, by which they are sorted.
    pub(crate) data_products: Vec<DataProduct>,
    /// The dependencies of its products, sorted, without a cycle.
    pub(crate) dependencies: Vec<Dependency>,
}

/// Why a plan or a change of one is refused.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum PlanError {
    /// Two entries of a request are of the same product.
    #[error("data product `{0}` is given twice")]
    DuplicateProduct(String),
    /// Two entries of a request are of the same dependency.
    #[error("the dependency of `{child}` on `{parent}` is given twice")]
    DuplicateDependency {
        /// Id of the product that is needed.
        parent: String,
        /// Id of the product that needs it.
        child: String,
    },
    /// A product that is not in the plan.
    #[error("the plan has no data product `{0}`")]
    Missing(String),
    /// A product that depends on itself, perhaps through others.
    #[error("the dependencies have a cycle through data product `{0}`")]
    Cycle(String),
    /// A state that only the service sets.
    #[error("data product `{id}` cannot be set to {state}: expected running, success or failed")]
    State {
        /// Id of the product.
        id: String,
        /// The state that was asked for.
        state: State,
    },
    /// A disabled product, whose state cannot be set.
    #[error("data product `{0}` is disabled")]
    Disabled(String),
}

impl Plan {
    /// A plan of this dataset without any product.
    pub(crate) fn empty(dataset: Dataset) -> Plan {
        Plan { dataset, data_products: Vec::new(), dependencies: Vec::new() }
    }

    /// The product with this id.
    pub(crate) fn product(&self, id: &str) -> Option<&DataProduct> {
        self.data_products.iter().find(|product| product.id == id)
    }

    /// This plan with what `posted` adds to it and changes in it. A product that was there keeps its state, but one
    /// that was disabled waits again.
    ///
    /// # Errors
    /// When `posted` has an entry twice, or when the whole has a cycle or lacks a product.
    pub(crate) fn extended(&self, posted: &Plan) -> Result<Plan, PlanError> {
        posted.check_duplicates()?;
        let mut plan = Plan { dataset: posted.dataset.clone(), ..self.clone() };
        for product in &posted.data_products {
            match plan.data_products.iter_mut().find(|stored| stored.id == product.id) {
                Some(stored) => stored.redefine(product),
                None => plan.data_products.push(DataProduct { state: State::Waiting, ..product.clone() }),
            }
        }
        for dependency in &posted.dependencies {
            match plan.dependencies.iter_mut().find(|stored| stored.ends() == dependency.ends()) {
                Some(stored) => stored.clone_from(dependency),
                None => plan.dependencies.push(dependency.clone()),
            }
        }
        plan.check_graph()?;
        plan.data_products.sort_by(|one, other| one.id.cmp(&other.id));
        plan.dependencies.sort_by(|one, other| one.ends().cmp(&other.ends()));
        Ok(plan)
    }

    /// Sets products to the states that a user reports. All that is made from them waits again, unless the same request
    /// sets it too.
    ///
    /// # Errors
    /// When a state is not a user's to set, or a product is missing, disabled, or given twice.
    pub(crate) fn update(&mut self, updates: &[StateUpdate]) -> Result<(), PlanError> {
        let updated = self.enabled(updates.iter().map(|update| update.id.as_str()))?;
        if let Some(StateUpdate { id, state, .. }) = updates.iter().find(|update| !update.state.is_reported()) {
            return Err(PlanError::State { id: id.clone(), state: *state });
        }
        for (&position, update) in updated.iter().zip(updates) {
            self.data_products[position].report(update);
        }
        for position in self.downstream(&updated) {
            if !updated.contains(&position) {
                self.data_products[position].reset();
            }
        }
        self.trigger();
        Ok(())
    }

    /// Lets products wait again, and all that is made from them.
    ///
    /// # Errors
    /// When a product is missing, disabled, or given twice.
    pub(crate) fn clear(&mut self, ids: &[String]) -> Result<(), PlanError> {
        let cleared = self.enabled(ids.iter().map(String::as_str))?;
        for position in self.downstream(&cleared) {
            self.data_products[position].reset();
        }
        self.trigger();
        Ok(())
    }

    /// Disables products: nothing waits for them any more.
    ///
    /// # Errors
    /// When a product is missing, disabled already, or given twice.
    pub(crate) fn disable(&mut self, ids: &[String]) -> Result<(), PlanError> {
        for position in self.enabled(ids.iter().map(String::as_str))? {
            self.data_products[position].state = State::Disabled;
        }
        self.trigger();
        Ok(())
    }

    /// Pauses the dataset, or ends its pause, which triggers what became ready in it.
    pub(crate) fn set_paused(&mut self, paused: bool) {
        self.dataset.paused = paused;
        self.trigger();
    }

    /// Queues every eager product that waits, and whose parents are all successful. A paused dataset triggers nothing.
    pub(crate) fn trigger(&mut self) {
        if self.dataset.paused {
            return;
        }
        for position in self.ready() {
            let product = &mut self.data_products[position];
            if product.eager {
                product.state = State::Queued;
            }
        }
    }

    /// The updates that a user may make next: what runs succeeds, what is queued runs, and so does what waits for
    /// nothing but the user.
    pub(crate) fn next(&self) -> Vec<StateUpdate> {
        let ready = self.ready();
        let next = |(position, product): (usize, &DataProduct)| match product.state {
            State::Running => Some(StateUpdate::new(&product.id, State::Success)),
            State::Queued => Some(StateUpdate::new(&product.id, State::Running)),
            State::Waiting if !product.eager && ready.contains(&position) => {
                Some(StateUpdate::new(&product.id, State::Running))
            }
            State::Waiting | State::Success | State::Failed | State::Disabled => None,
        };
        self.data_products.iter().enumerate().filter_map(next).collect()
    }

    /// True if every product that is not disabled is successful.
    pub(crate) fn is_done(&self) -> bool {
        self.data_products.iter().all(|product| matches!(product.state, State::Success | State::Disabled))
    }

    fn check_duplicates(&self) -> Result<(), PlanError> {
        let mut ids = HashSet::new();
        if let Some(again) = self.data_products.iter().find(|product| !ids.insert(&product.id)) {
            return Err(PlanError::DuplicateProduct(again.id.clone()));
        }
        let mut ends = HashSet::new();
        match self.dependencies.iter().find(|dependency| !ends.insert(dependency.ends())) {
            Some(Dependency { parent_id, child_id, .. }) => {
                Err(PlanError::DuplicateDependency { parent: parent_id.clone(), child: child_id.clone() })
            }
            None => Ok(()),
        }
    }

    fn check_graph(&self) -> Result<(), PlanError> {
        let mut ends = self.dependencies.iter().flat_map(|dependency| [&dependency.parent_id, &dependency.child_id]);
        if let Some(missing) = ends.find(|id| self.product(id).is_none()) {
            return Err(PlanError::Missing(missing.clone()));
        }
        // Disabled products count: they may come back.
        let cycle = toposort(&self.graph(|_| true), None).err();
        cycle.map_or(Ok(()), |cycle| Err(PlanError::Cycle(self.data_products[cycle.node_id().index()].id.clone())))
    }

    /// The positions of these products, of which each must be there, enabled, and given once.
    fn enabled<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Result<Vec<usize>, PlanError> {
        let mut positions = Vec::new();
        for id in ids {
            let position = self.data_products.iter().position(|product| product.id == id);
            match position {
                None => return Err(PlanError::Missing(id.to_owned())),
                Some(position) if positions.contains(&position) => {
                    return Err(PlanError::DuplicateProduct(id.to_owned()));
                }
                Some(position) if self.data_products[position].state == State::Disabled => {
                    return Err(PlanError::Disabled(id.to_owned()));
                }
                Some(position) => positions.push(position),
            }
        }
        Ok(positions)
    }

    /// The positions of the products that wait, and whose parents are all successful.
    fn ready(&self) -> Vec<usize> {
        let graph = self.graph(DataProduct::is_enabled);
        let successful = |parent: NodeIndex| self.data_products[parent.index()].state == State::Success;
        let ready = |&position: &usize| {
            let node = NodeIndex::new(position);
            self.data_products[position].state == State::Waiting
                && graph.neighbors_directed(node, Incoming).all(successful)
        };
        (0..self.data_products.len()).filter(ready).collect()
    }

    /// The positions of all that is made from the products at these positions, and theirs.
    fn downstream(&self, from: &[usize]) -> HashSet<usize> {
        let graph = self.graph(DataProduct::is_enabled);
        let mut search = Dfs::empty(&graph);
        for &position in from {
            search.stack.push(NodeIndex::new(position));
        }
        std::iter::from_fn(|| search.next(&graph)).map(NodeIndex::index).collect()
    }

    /// The dependencies between the products of which `counts` is true. The index of a node is the position of its
    /// product.
    fn graph(&self, counts: impl Fn(&DataProduct) -> bool) -> DiGraph<(), ()> {
        let mut graph = DiGraph::with_capacity(self.data_products.len(), self.dependencies.len());
        let mut nodes = HashMap::new();
        for product in &self.data_products {
            let node = graph.add_node(());
            if counts(product) {
                nodes.insert(product.id.as_str(), node);
            }
        }
        for dependency in &self.dependencies {
            let (parent, child) = dependency.ends();
            if let (Some(&parent), Some(&child)) = (nodes.get(parent), nodes.get(child)) {
                graph.add_edge(parent, child, ());
            }
        }
        graph
    }
}
