//! The default terms of use. `/docs` publishes the terms of the service, and people accept them when they sign up.

/// The terms of the data API, one sentence each.
pub fn default_terms(service: &str) -> Vec<String> {
    vec![
        format!("Wherever the data is displayed, {service} must be cited as the source, with a link."),
        "The rankings must not be republished as a competing leaderboard, and the data must not be resold.".into(),
        "One key is used per application; keys are not shared across products.".into(),
        "Volume beyond the Pro tier, commercial redistribution, or a guarantee of stability needs a separate arrangement \
         (Enterprise tier, by arrangement, not purchasable online)."
            .into(),
    ]
}
