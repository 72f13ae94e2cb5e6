//! Items as JSON, with the fields of `routes::shapes`.

use std::io::Write as _;

use serde::Serialize;

use crate::{figures::Score, model_state::ModelState};

/// An item. Fields are written in the order in which they are added.
#[derive(Debug, Default)]
pub struct Item(Vec<u8>);

impl Item {
    /// Adds a field.
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        self.begin(name);
        serde_json::to_writer(&mut self.0, &value)
            .expect("a field is a word, a number or a list of words");
        self
    }

    /// Adds a field if it has a value, because a client may read `null` as zero.
    pub fn maybe(self, name: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds the bounds of a number if they are known.
    pub fn bounds(self, name: &str, bounds: Option<(f64, f64)>) -> Self {
        let (lower, upper) = bounds.unzip();
        self.maybe(&format!("{name}Lower"), lower)
            .maybe(&format!("{name}Upper"), upper)
    }

    /// Adds a score if there is one, with the bounds of its interval if they are known.
    pub fn score(self, name: &str, score: Option<Score>) -> Self {
        self.maybe(name, score.map(|score| score.score))
            .bounds("confidence", score.and_then(|score| score.bounds))
    }

    /// Adds the id, the name and the provider of a model.
    pub fn model(self, model_state: &ModelState) -> Self {
        let name = model_state.model.name();
        let provider = model_state.model.provider();
        self.with("modelId", model_state.id())
            .with("modelName", name)
            .with("provider", provider)
    }

    /// Adds an object.
    pub fn object(mut self, name: &str, object: &Self) -> Self {
        self.begin(name);
        object.write(&mut self.0);
        self
    }

    /// Adds a list of objects.
    pub fn objects(mut self, name: &str, objects: impl IntoIterator<Item = Self>) -> Self {
        self.begin(name);
        self.0
            .extend(Self::list(&objects.into_iter().collect::<Vec<_>>()));
        self
    }

    /// The JSON text of a list.
    pub fn list(items: &[Self]) -> Vec<u8> {
        let mut text =
            Vec::with_capacity(items.iter().map(|item| item.0.len() + 2).sum::<usize>() + 2);
        text.push(b'[');
        for (index, item) in items.iter().enumerate() {
            text.extend((index > 0).then_some(b','));
            item.write(&mut text);
        }
        text.push(b']');
        text
    }

    fn begin(&mut self, name: &str) {
        let separator = if self.0.is_empty() { "" } else { "," };
        write!(self.0, "{separator}\"{name}\":").expect("memory can be written");
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.push(b'{');
        to.extend(&self.0);
        to.push(b'}');
    }
}
