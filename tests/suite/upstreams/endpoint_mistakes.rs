//! Mistakes in the definitions of configured endpoints.

use scoregate::config::{read_text, resolve};

/// Definitions with many mistakes.
const MISTAKES: &str = r#"
        [upstream]
        url = "http://127.0.0.1:4000"
        [endpoints.models]
        path = "/rankings"
        [endpoints.empty]
        [endpoints.models_]
        path = "/r"
        summary = "R."
        fields = [{ name = "a", type = "string", meaning = "A." }]
        [endpoints.Prices]
        path = "/p"
        [endpoints.latest]
        path = "/models/latest"
        summary = "The newest model."
        [[endpoints.latest.fields]]
        name = "id"
        type = "string"
        meaning = "Identifier."
        [endpoints.cheapest]
        path = "prices/../:id"
        summary = ""
        parameters = [
            "period", "id", "period", { name = "a" },
            { name = "limit", values = ["x y", "x y"], default = "z", meaning = "" },
            { name = "n", values = ["1"], default = "1", meaning = "N." },
            { name = "n", values = ["1"], default = "1", meaning = "N." },
        ]
        one = "yes"
        colour = "red"
        fields = [
            { name = "a", type = "float", meaning = "A." },
            { name = "b", type = "string", meaning = "B.", words = ["x"], hidden = true },
            { name = "b", type = "words", meaning = "" },
            { name = "c", type = "object", meaning = "C.", optional = 1 },
            7,
            { name = "d", type = "words", meaning = "D.", words = ["x", "y", "x"] },
            { name = "e", type = "words", meaning = "E.", words = [""] },
            { name = "f", type = "integer", meaning = "F.", example = "many" },
            { name = "g", type = "words", meaning = "G.", words = ["x"], example = "y" },
        ]
        [endpoints.clash]
        path = "/models/:id/history"
    "#;

#[test]
fn every_mistake_in_a_definition_is_reported_in_one_run() {
    let problems = resolve(&read_text(MISTAKES).unwrap())
        .unwrap_err()
        .to_string();
    for (path, words) in [
        ("endpoints.models", "taken"),
        ("endpoints.models.summary", "sentence"),
        ("endpoints.models.fields", "at least one field"),
        ("endpoints.empty", "the table is empty"),
        ("endpoints.models_", "without underscores"),
        ("endpoints.Prices", "lower-case"),
        ("endpoints.latest.path", "/api/v1/models/{id}"),
        ("endpoints.cheapest.path", "segments"),
        ("endpoints.cheapest.summary", "one line"),
        ("endpoints.cheapest.parameters", "\"limit\", or a table"),
        ("endpoints.cheapest.parameters", "\"period\" once"),
        ("endpoints.cheapest.parameters", "missing field `values`"),
        (
            "endpoints.cheapest.parameters",
            "`limit`: choose another name",
        ),
        (
            "endpoints.cheapest.parameters",
            "`limit`: write 1 to 64 different values",
        ),
        (
            "endpoints.cheapest.parameters",
            "`limit`: the default is one of the values",
        ),
        (
            "endpoints.cheapest.parameters",
            "`limit`: write the meaning",
        ),
        ("endpoints.cheapest.parameters", "`n` is described twice"),
        ("endpoints.cheapest.one", "true or false"),
        ("endpoints.cheapest.colour", "no such setting"),
        ("endpoints.cheapest.fields[0].type", "\"number\""),
        ("endpoints.cheapest.fields[1].words", "remove it"),
        ("endpoints.cheapest.fields[1].hidden", "unknown"),
        ("endpoints.cheapest.fields[2].meaning", "one line"),
        ("endpoints.cheapest.fields[2].words", "list of the words"),
        ("endpoints.cheapest.fields[3].optional", "true or false"),
        ("endpoints.cheapest.fields[3].fields", "list of fields"),
        ("endpoints.cheapest.fields[4]", "as a table"),
        ("endpoints.cheapest.fields[5].words", "twice"),
        ("endpoints.cheapest.fields[6].words", "empty"),
        (
            "endpoints.cheapest.fields[7].example",
            "of the field's type",
        ),
        (
            "endpoints.cheapest.fields[8].example",
            "of the field's type",
        ),
        ("endpoints.clash.path", "/api/v1/models/{id}/history"),
        ("endpoints.clash.summary", "sentence"),
    ] {
        let found = problems
            .lines()
            .any(|line| line.contains(&format!("{path}:")) && line.contains(words));
        assert!(found, "{path}: {words}\n{problems}");
    }
    let built_in = "upstream = \"built-in\"\n[endpoints.x]\npath = \"/x\"";
    let refused = resolve(&read_text(built_in).unwrap())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("built-in backend has only"), "{refused}");
}

#[test]
fn a_parameter_cannot_be_named_like_a_credential() {
    let problems = |name: &str| {
        let text = format!(
            "upstream.url = \"http://127.0.0.1:4000\"\n[endpoints.prices]\npath = \"/prices\"\nsummary = \"Prices.\"\n\
             parameters = [{{ name = \"{name}\", values = [\"a\"], default = \"a\", meaning = \"M.\" }}]\n\
             fields = [{{ name = \"a\", type = \"string\", meaning = \"A.\" }}]\n"
        );
        resolve(&read_text(&text).unwrap()).map_err(|problems| problems.to_string())
    };
    for name in [
        "key",
        "API_KEY",
        "apiKey",
        "api-key",
        "token",
        "Access_Token",
        "authorization",
        "secret",
        "password",
    ] {
        let problems = problems(name).unwrap_err();
        let message =
            format!("parameter `{name}`: choose another name: this one asks for a credential");
        assert!(
            problems.contains("endpoints.prices.parameters: ") && problems.contains(&message),
            "{name}: {problems}"
        );
    }
    for name in ["unit", "tokens", "keyboard", "sort_key"] {
        assert!(problems(name).is_ok(), "{name}");
    }
}
