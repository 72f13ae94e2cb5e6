//! The model under test.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use scoregate_base::routes::ModelId;

use super::{BadRun, bad_run::check_amount};

/// Maximum length of a model or provider name, in characters, so that it fits on a page.
const LONGEST_NAME: usize = 200;

/// Characters that have no glyph, as the first and last of each range: every `Default_Ignorable_Code_Point` of Unicode,
/// which includes zero-width characters, bidirectional controls, variation selectors and tags; line and paragraph
/// separators; and interlinear annotations. They can make different names look equal, or reverse the text around a
/// name. Combining characters and whitespace are allowed.
const INVISIBLE: [(char, char); 17] = [
    ('\u{AD}', '\u{AD}'),
    ('\u{34F}', '\u{34F}'),
    ('\u{61C}', '\u{61C}'),
    ('\u{115F}', '\u{1160}'),
    ('\u{17B4}', '\u{17B5}'),
    ('\u{180B}', '\u{180F}'),
    ('\u{200B}', '\u{200F}'),
    ('\u{2028}', '\u{202E}'),
    ('\u{2060}', '\u{206F}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{FE00}', '\u{FE0F}'),
    ('\u{FEFF}', '\u{FEFF}'),
    ('\u{FFA0}', '\u{FFA0}'),
    ('\u{FFF0}', '\u{FFFB}'),
    ('\u{1BCA0}', '\u{1BCA3}'),
    ('\u{1D173}', '\u{1D17A}'),
    ('\u{E0000}', '\u{E0FFF}'),
];

/// A model under test.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TestedModel {
    id: ModelId,
    #[serde(deserialize_with = "read_name")]
    name: String,
    #[serde(deserialize_with = "read_name")]
    provider: String,
    #[serde(
        default,
        deserialize_with = "read_price",
        skip_serializing_if = "Option::is_none"
    )]
    price_input: Option<f64>,
    #[serde(
        default,
        deserialize_with = "read_price",
        skip_serializing_if = "Option::is_none"
    )]
    price_output: Option<f64>,
}

impl TestedModel {
    /// A model with its prices in US dollars per million tokens, if known.
    pub fn new(
        id: ModelId,
        name: &str,
        provider: &str,
        price_input: Option<f64>,
        price_output: Option<f64>,
    ) -> Result<Self, BadRun> {
        for (field, text) in [("name", name), ("provider", provider)] {
            check_name(text).map_err(|problem| BadRun::new(field, problem))?;
        }
        for (field, price) in [("priceInput", price_input), ("priceOutput", price_output)] {
            let checked = price.map_or(Ok(()), check_amount);
            checked.map_err(|problem| BadRun::new(field, problem))?;
        }
        Ok(Self {
            id,
            name: name.to_owned(),
            provider: provider.to_owned(),
            price_input,
            price_output,
        })
    }

    /// The id of the model.
    pub fn id(&self) -> &ModelId {
        &self.id
    }

    /// The name of the model.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id of the provider.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Price in US dollars per million input tokens.
    pub fn price_input(&self) -> Option<f64> {
        self.price_input
    }

    /// Price in US dollars per million output tokens.
    pub fn price_output(&self) -> Option<f64> {
        self.price_output
    }
}

fn read_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    check_name(&name).map_err(D::Error::custom)?;
    Ok(name)
}

fn read_price<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let price = Option::<f64>::deserialize(from)?;
    price
        .map_or(Ok(()), check_amount)
        .map_err(D::Error::custom)?;
    Ok(price)
}

fn check_name(text: &str) -> Result<(), String> {
    if let Some((index, found)) = text.chars().enumerate().find(|(_, c)| is_invisible(*c)) {
        return Err(format!(
            "character {} is U+{:04X}, which is invisible; remove it: different names must not look equal",
            index + 1,
            u32::from(found)
        ));
    }
    if text.trim().is_empty() {
        Err("is empty; write a display name".to_owned())
    } else if text.chars().any(char::is_control) {
        Err("has a control character; write visible text".to_owned())
    } else if text.chars().count() > LONGEST_NAME {
        Err(format!("is longer than {LONGEST_NAME} characters"))
    } else {
        Ok(())
    }
}

fn is_invisible(c: char) -> bool {
    INVISIBLE
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, provider: &str) -> Result<TestedModel, BadRun> {
        TestedModel::new(ModelId::new("m").unwrap(), name, provider, None, None)
    }

    #[test]
    fn invisible_characters_in_names_are_rejected_with_their_place_and_the_remedy() {
        let stated: Vec<char> = [
            "\u{AD}\u{61C}\u{180E}\u{FEFF}\u{3164}\u{FE0F}",
            "\u{E0100}\u{34F}\u{FFA0}",
        ]
        .concat()
        .chars()
        .chain('\u{200B}'..='\u{200F}')
        .chain('\u{202A}'..='\u{202E}')
        .chain('\u{2060}'..='\u{2064}')
        .chain('\u{2066}'..='\u{206F}')
        .chain('\u{E0000}'..='\u{E007F}')
        .collect();
        for c in stated {
            for (field, model) in [
                ("name", named(&format!("Atlas{c}"), "meridian")),
                ("provider", named("Atlas", &format!("{c}meridian"))),
            ] {
                let bad = model.expect_err(&format!("U+{:04X}", u32::from(c)));
                let found = format!("U+{:04X}, which is invisible; remove it", u32::from(c));
                assert!(bad.field == field && bad.problem.contains(&found), "{bad}");
            }
        }
        let bad = named("At\u{200B}las", "meridian").unwrap_err();
        assert!(bad.problem.starts_with("character 3 is U+200B"), "{bad}");
    }

    #[test]
    fn names_of_any_script_are_accepted() {
        for name in [
            "Atlas 4 (preview)",
            "模型 4",
            "モデル",
            "نموذج",
            "דגם",
            "Modèle é",
            "e\u{301}",
            "मॉडल",
            "🚀 4",
        ] {
            assert!(named(name, name).is_ok(), "{name}");
        }
    }
}
