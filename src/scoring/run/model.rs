//! The model under test.

use crate::routes::ModelId;

use super::{BadRun, amount};

/// Maximum length of the name of a model or a provider, in characters: it has to fit on a page.
const LONGEST_NAME: usize = 200;

/// A model under test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestedModel {
    id: ModelId,
    name: String,
    provider: String,
    price_input: Option<f64>,
    price_output: Option<f64>,
}

impl TestedModel {
    /// A model with its prices, if known, in US dollars per million tokens.
    pub fn new(
        id: ModelId,
        name: &str,
        provider: &str,
        price_input: Option<f64>,
        price_output: Option<f64>,
    ) -> Result<Self, BadRun> {
        visible("name", name)?;
        visible("provider", provider)?;
        price_input.map_or(Ok(()), |price| amount("priceInput", price))?;
        price_output.map_or(Ok(()), |price| amount("priceOutput", price))?;
        Ok(Self { id, name: name.to_owned(), provider: provider.to_owned(), price_input, price_output })
    }

    /// Its id.
    pub fn id(&self) -> &ModelId {
        &self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id of its provider.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// US dollars per million input tokens.
    pub fn price_input(&self) -> Option<f64> {
        self.price_input
    }

    /// US dollars per million output tokens.
    pub fn price_output(&self) -> Option<f64> {
        self.price_output
    }
}

fn visible(field: &str, text: &str) -> Result<(), BadRun> {
    let problem = if text.trim().is_empty() {
        "is empty; write a display name".to_owned()
    } else if text.chars().any(char::is_control) {
        "has a control character; write visible text".to_owned()
    } else if text.chars().count() > LONGEST_NAME {
        format!("is longer than {LONGEST_NAME} characters")
    } else {
        return Ok(());
    };
    Err(BadRun::new(field, problem))
}
