//! Limits as command-line options and as an object in a request, with one entry for each setting in the table of
//! limits.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use serde::{Deserialize, Serialize};

use crate::admin::command_problem::{CommandProblem, CommandResult};
use scoregate_base::limits::{LimitChanges, LimitSetting, Scope};

/// New limits of an application, or of an account if `OF_OWNER`. Omitted limits are unchanged.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LimitOptions<const OF_OWNER: bool>(LimitChanges);

impl<const OF_OWNER: bool> LimitOptions<OF_OWNER> {
    /// The changes.
    pub(super) fn changes(self) -> LimitChanges {
        self.0
    }

    /// The changes. Fails if there are none.
    pub(super) fn needed(self) -> CommandResult<LimitChanges> {
        if self.0.is_empty() {
            let names: Vec<_> = settings(OF_OWNER).map(LimitSetting::name).collect();
            let names = names.join(", ");
            return Err(CommandProblem::bad(format!(
                "set one of the limits {names}; `none` (null in JSON) restores the limit of the tier"
            )));
        }
        Ok(self.0)
    }
}

impl<const OF_OWNER: bool> Args for LimitOptions<OF_OWNER> {
    fn augment_args(command: Command) -> Command {
        settings(OF_OWNER).fold(command, |command, setting| {
            let option = Arg::new(setting.name())
                .long(setting.name().replace('_', "-"))
                .value_name("N|none")
                .value_parser(limit_or_none)
                .help(setting.help());
            command.arg(option)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const OF_OWNER: bool> FromArgMatches for LimitOptions<OF_OWNER> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for setting in settings(OF_OWNER) {
            if let Some(value) = matches.get_one::<Option<u32>>(setting.name()) {
                self.0 = std::mem::take(&mut self.0).with(setting, *value);
            }
        }
        Ok(())
    }
}

fn settings(of_owner: bool) -> impl Iterator<Item = LimitSetting> {
    let scope = if of_owner {
        Scope::Owner
    } else {
        Scope::Application
    };
    LimitSetting::ALL
        .into_iter()
        .filter(move |setting| setting.scope() == scope)
}

fn limit_or_none(text: &str) -> Result<Option<u32>, String> {
    if text == "none" {
        return Ok(None);
    }
    let limit = text.parse();
    limit
        .map(Some)
        .map_err(|_| "write an integer, or `none`".into())
}
