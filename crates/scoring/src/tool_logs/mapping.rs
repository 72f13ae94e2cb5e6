//! The mapping file: suites and axes of tasks; ids, names and prices of models.
//!
//! Suites are validated together with the runs that are created for them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Axis, TestedModel};
use scoregate_base::routes::ModelId;

use super::{
    evaluation::{LogProblem, both},
    record_mapping::RecordMapping,
};

/// A parsed mapping file.
#[derive(Debug)]
pub struct LogMapping {
    models: BTreeMap<String, TestedModel>,
    tasks: BTreeMap<String, TaskMapping>,
    ignored: Vec<String>,
    /// The fields of the records in JSON Lines and CSV logs, from any tool.
    pub(super) records: Option<RecordMapping>,
}

/// The suite and the axes that a task feeds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskMapping {
    pub suite: String,
    pub axes: BTreeMap<Axis, ScoreSource>,
    /// The filter of lm-evaluation-harness.
    pub filter: Option<String>,
}

/// The source of an axis's scores.
#[derive(Debug, Deserialize)]
#[serde(from = "WrittenSource")]
pub struct ScoreSource {
    /// The scorer or metric; may be omitted if there is only one.
    pub score: Option<String>,
    /// The worst and the best value.
    pub scale: Option<[f64; 2]>,
    /// Scores from 0 to 1 for words.
    pub values: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum WrittenSource {
    Name(String),
    Table {
        score: Option<String>,
        scale: Option<[f64; 2]>,
        #[serde(default)]
        values: BTreeMap<String, f64>,
    },
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenMapping {
    models: BTreeMap<String, MappedModel>,
    tasks: BTreeMap<String, TaskMapping>,
    ignored_tasks: Vec<String>,
    records: Option<RecordMapping>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MappedModel {
    id: Option<String>,
    name: String,
    provider: String,
    price_input: Option<f64>,
    price_output: Option<f64>,
}

impl From<WrittenSource> for ScoreSource {
    fn from(written: WrittenSource) -> Self {
        match written {
            WrittenSource::Name(name) => Self {
                score: Some(name),
                scale: None,
                values: BTreeMap::new(),
            },
            WrittenSource::Table {
                score,
                scale,
                values,
            } => Self {
                score,
                scale,
                values,
            },
        }
    }
}

impl LogMapping {
    /// Parses the text of a mapping file. The error names the entry and states the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written: WrittenMapping = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut models = BTreeMap::new();
        for (tool_name, model) in &written.models {
            let model = model
                .read(tool_name)
                .map_err(|problem| format!("models.{tool_name:?}.{problem}"))?;
            models.insert(tool_name.clone(), model);
        }
        // Two names may refer to the same model, but their entries must be equal. Otherwise the model's name and prices
        // would change with each run.
        for (name, model) in &models {
            let other = models
                .iter()
                .find(|(_, other)| other.id() == model.id() && *other != model);
            if let Some((other, _)) = other {
                return Err(format!(
                    "models.{name:?} and models.{other:?} have the id {} but differ; give one of them another `id`",
                    model.id()
                ));
            }
        }
        for (name, task) in &written.tasks {
            task.check()
                .map_err(|problem| format!("tasks.{name:?}.axes{problem}"))?;
        }
        Ok(Self {
            models,
            tasks: written.tasks,
            ignored: written.ignored_tasks,
            records: written.records,
        })
    }

    /// The entries of a task and a model, or an error that names each missing entry.
    pub(super) fn entries(
        &self,
        task: &str,
        model: &str,
    ) -> Result<(&TaskMapping, &TestedModel), LogProblem> {
        both(self.task(task), self.model(model))
    }

    /// The entry of a task; an error if the task is ignored or has none.
    pub(super) fn task(&self, name: &str) -> Result<&TaskMapping, LogProblem> {
        if self.ignored.iter().any(|ignored| ignored == name) {
            return Err(LogProblem::skipped(format!(
                "the task {name} is in `ignored_tasks`"
            )));
        }
        self.tasks.get(name).ok_or_else(|| {
            LogProblem::missing(format!(
                "the mapping has no [tasks.{name:?}]; add it, or add the task to `ignored_tasks`"
            ))
        })
    }

    /// The entry of a model; an error if it has none.
    pub(super) fn model(&self, name: &str) -> Result<&TestedModel, LogProblem> {
        self.models.get(name).ok_or_else(|| {
            LogProblem::missing(format!(
                "the mapping has no [models.{name:?}]; add its name and provider"
            ))
        })
    }
}

impl MappedModel {
    fn read(&self, tool_name: &str) -> Result<TestedModel, String> {
        let id = self.id.clone().unwrap_or_else(|| safe_id(tool_name));
        let rule = "write 1 to 128 of A-Z a-z 0-9 . _ : - and begin with a letter or digit";
        let id = ModelId::new(&id).ok_or_else(|| format!("id: {id:?} is not an id; {rule}"))?;
        TestedModel::new(
            id,
            &self.name,
            &self.provider,
            self.price_input,
            self.price_output,
        )
        .map_err(|bad| {
            // Replaces a run's field names with the mapping's field names.
            let problem = bad.to_string().replacen("priceInput", "price_input", 1);
            problem.replacen("priceOutput", "price_output", 1)
        })
    }
}

impl TaskMapping {
    fn check(&self) -> Result<(), String> {
        if self.axes.is_empty() {
            return Err(
                ": is empty; name an axis and its score, such as correctness = \"accuracy\"".into(),
            );
        }
        for (axis, source) in &self.axes {
            let axis = axis.word();
            if let Some([worst, best]) = source.scale {
                let is_usable = worst.is_finite() && best.is_finite() && (best - worst).abs() > 0.0;
                if !is_usable {
                    return Err(format!(
                        ".{axis}.scale: write two different numbers, [worst, best]"
                    ));
                }
            }
            if let Some((word, _)) = source
                .values
                .iter()
                .find(|(_, score)| !(0.0..=1.0).contains(*score))
            {
                return Err(format!(
                    ".{axis}.values.{word:?}: write a number from 0 to 1"
                ));
            }
        }
        Ok(())
    }
}

/// A valid id for a name such as `org/model`.
fn safe_id(tool_name: &str) -> String {
    let name = tool_name.trim_start_matches(|first: char| !first.is_ascii_alphanumeric());
    name.replace('/', "--").replace(
        |c: char| !c.is_ascii_alphanumeric() && !"._:-".contains(c),
        "_",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        LogMapping::parse(text).unwrap_err()
    }

    #[test]
    fn model_names_of_the_tools_become_ids() {
        let mapping = LogMapping::parse(
            "[models.\"meridian/atlas-4@fast\"]\nname = \"Atlas\"\nprovider = \"meridian\"\n\
             [models.\"./other\"]\nid = \"other\"\nname = \"Other\"\nprovider = \"meridian\"\n",
        );
        let ids = mapping
            .unwrap()
            .models
            .values()
            .map(|model| model.id().to_string())
            .collect::<Vec<_>>();
        assert_eq!(ids, ["other", "meridian--atlas-4_fast"]);
        assert_eq!(safe_id("../x y"), "x_y");
    }

    #[test]
    fn every_error_of_a_mapping_names_its_entry_and_the_remedy() {
        let model = |name: &str, more: &str| {
            format!("[models.\"{name}\"]\nname = \"N\"\nprovider = \"p\"\n{more}\n")
        };
        let task = |axes: &str| format!("[tasks.t]\nsuite = \"coding\"\naxes = {axes}\n");
        let rows = [
            (
                model("m", "id = \"a/b\""),
                "models.\"m\".id: \"a/b\" is not an id; write 1 to 128",
            ),
            (model("/", ""), "models.\"/\".id: \"\" is not an id"),
            (
                model("m", "price_input = -1"),
                "models.\"m\".price_input: -1 is not an amount",
            ),
            (model("m", "prices = 1"), "unknown field `prices`"),
            (
                model("a/b", "") + &model("a--b", "price_input = 1"),
                "have the id a--b but differ",
            ),
            (
                "[models.m]\nname = \"N\"\n".into(),
                "missing field `provider`",
            ),
            (task("{}"), "tasks.\"t\".axes: is empty; name an axis"),
            (
                task("{ spec = { scale = [1, 1] } }"),
                "tasks.\"t\".axes.spec.scale: write two different",
            ),
            (
                task("{ spec = { values = { A = 2 } } }"),
                "axes.spec.values.\"A\": write a number from 0 to 1",
            ),
            ("[tasks.t]\naxes = {}\n".into(), "missing field `suite`"),
        ];
        for (text, problem) in rows {
            assert!(
                refused(&text).contains(problem),
                "{text}\n{}",
                refused(&text)
            );
        }
    }
}
