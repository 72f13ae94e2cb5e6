//! Ids of models and of their descriptions.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::run::TestedModel;

/// Ids of models and descriptions looked up so far.
#[derive(Debug, Default)]
pub(super) struct DescriptionIds(HashMap<Vec<u8>, (i64, i64)>);

impl DescriptionIds {
    /// The ids of a model and of this description; new ones are created.
    pub(super) fn numbers(
        &mut self,
        file: &Connection,
        model: &TestedModel,
    ) -> rusqlite::Result<(i64, i64)> {
        let key = key(model);
        if let Some(numbers) = self.0.get(&key) {
            return Ok(*numbers);
        }
        let numbers = look_up(file, model)?;
        self.0.insert(key, numbers);
        Ok(numbers)
    }
}

fn key(model: &TestedModel) -> Vec<u8> {
    let price = |price: Option<f64>| price.map_or([0xFF; 8], f64::to_le_bytes);
    let texts = [model.id().as_str(), model.name(), model.provider()];
    let texts = texts.map(|text| [text.as_bytes(), b"\0"].concat()).concat();
    [
        &texts[..],
        &price(model.price_input()),
        &price(model.price_output()),
    ]
    .concat()
}

fn look_up(file: &Connection, model: &TestedModel) -> rusqlite::Result<(i64, i64)> {
    let id = model.id().as_str();
    file.execute("INSERT OR IGNORE INTO model (id) VALUES (?1)", [id])?;
    let number = file.query_row("SELECT number FROM model WHERE id = ?1", [id], |row| {
        row.get(0)
    })?;
    let all = params![
        number,
        model.name(),
        model.provider(),
        model.price_input(),
        model.price_output()
    ];
    let known = file
        .query_row(
            "SELECT number FROM description WHERE model = ?1 AND name = ?2 AND provider = ?3
             AND price_input IS ?4 AND price_output IS ?5",
            all,
            |row| row.get(0),
        )
        .optional()?;
    if let Some(description) = known {
        return Ok((number, description));
    }
    file.execute(
        "INSERT INTO description (model, name, provider, price_input, price_output) VALUES (?1, ?2, ?3, ?4, ?5)",
        all,
    )?;
    Ok((number, file.last_insert_rowid()))
}
