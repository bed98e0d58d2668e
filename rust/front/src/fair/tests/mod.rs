mod model;
mod queue;
mod share;

use std::sync::Arc;

use super::Owner;

fn owner(name: &str) -> Owner {
    Arc::from(name)
}
