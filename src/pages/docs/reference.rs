//! The reference parts of the docs page: endpoints, fields, parameters, headers.

use crate::pages::PagesConfig;
use scoregate_base::routes::{
    AllowedValues, Endpoint, Param, PublishedField, PublishedKind,
    bodies::ENVELOPE,
    headers::HEADERS,
    shapes::{FieldShape, ItemField, Presence},
};

use crate::pages::{
    html::{code, code_block, escape, prose, push, stacking_table},
    sample,
};

/// Note for endpoints whose items are passed through.
const OF_THE_SOURCE: &str = "<p>Items have the fields of the data source. Any listed field may be absent, and others may \
    be added.</p>\n";
const FIELD_HEADS: [&str; 3] = ["Field", "Type", "Meaning"];

/// Links to all endpoints, for the navigation.
pub fn links(config: &PagesConfig) -> String {
    config
        .endpoints
        .iter()
        .map(|row| {
            format!(
                "<li><a href=\"#{}\">{}</a></li>\n",
                anchor(row),
                escape(&short_path(row))
            )
        })
        .collect()
}

fn anchor(row: &Endpoint) -> String {
    format!("endpoint-{}", row.name)
}

fn short_path(row: &Endpoint) -> String {
    format!("/{}", row.segments.join("/"))
}

/// The table of endpoints.
pub fn overview(config: &PagesConfig) -> String {
    let rows = config.endpoints.iter().map(|row| {
        let link = format!(
            "<a href=\"#{}\">{}</a>",
            anchor(row),
            code(&short_path(row))
        );
        vec![link, parameter_words(row), prose(row.summary)]
    });
    stacking_table("Endpoints", &["Path", "Parameters", "Returns"], rows)
}

fn parameter_words(row: &Endpoint) -> String {
    let words: Vec<_> = taken(row).map(|param| code(param.name())).collect();
    if words.is_empty() {
        "none".into()
    } else {
        words.join(", ")
    }
}

/// The parameters of an endpoint, with the path parameter first.
pub fn taken(row: &Endpoint) -> impl Iterator<Item = Param> {
    row.route
        .names_a_model()
        .then_some(Param::Id)
        .into_iter()
        .chain(row.takes.iter().copied())
}

/// The section of one endpoint.
pub fn endpoint(row: &Endpoint, config: &PagesConfig, base: &str, model: &str) -> String {
    let id = anchor(row);
    let mut html =
        format!("<section class=\"endpoint\" id=\"{id}\" aria-labelledby=\"{id}-title\">\n");
    let path = row.documented_path().replace("{id}", ":id");
    let heading = format_args!(
        "<h3 id=\"{id}-title\"><span class=\"method\">GET</span> <a class=\"self\" href=\"#{id}\"><code>{}</code></a></h3>\n",
        escape(&path),
    );
    push(&mut html, heading);
    push(
        &mut html,
        format_args!("<div class=\"pair\">\n<div><p>{}</p>\n", prose(row.summary)),
    );
    html.push_str(&parameter_table(row, config, &path));
    html.push_str(&samples(row, config, base, model));
    push(
        &mut html,
        format_args!(
            "<div><h4>Fields of {}</h4>\n",
            if row.one { "the item" } else { "an item" }
        ),
    );
    html.push_str(&field_table(row, config, &path));
    let codes: Vec<_> = row
        .codes()
        .map(|code| format!("<a href=\"#{0}\"><code>{0}</code></a>", code.word))
        .collect();
    push(
        &mut html,
        format_args!(
            "<details><summary>Possible errors</summary>\n<p class=\"codes\">{}</p></details></div>\n</div>\n</section>\n",
            codes.join(" ")
        ),
    );
    html
}

/// The table of the parameters of an endpoint.
fn parameter_table(row: &Endpoint, config: &PagesConfig, path: &str) -> String {
    let mut html = String::new();
    let parameters: Vec<_> = taken(row)
        .map(|param| vec![code(param.name()), allowed(param), prose(param.meaning())])
        .collect();
    if !parameters.is_empty() {
        html.push_str(&stacking_table(
            &format!("Parameters of {path}"),
            &["Parameter", "Values", "Meaning"],
            parameters,
        ));
    }
    let ignored: Vec<_> = config
        .ignored(row)
        .iter()
        .map(|param| code(param.name()))
        .collect();
    if !ignored.is_empty() {
        let names = ignored.join(" and ");
        push(
            &mut html,
            format_args!(
                "<p>The data source ignores {names}: all values return the same data.</p>\n"
            ),
        );
    }
    html
}

/// The table of the fields of an item.
fn field_table(row: &Endpoint, config: &PagesConfig, path: &str) -> String {
    let mut html = String::new();
    let fields = match config.listed(row) {
        None => rows("", row.item),
        Some(listed) => {
            html.push_str(OF_THE_SOURCE);
            listed.iter().flat_map(listed_rows).collect()
        }
    };
    if !fields.is_empty() {
        html.push_str(&stacking_table(
            &format!("Fields of {path}"),
            &FIELD_HEADS,
            fields,
        ));
    }
    html
}

/// The end of the introduction and, next to it, a sample request and response.
fn samples(row: &Endpoint, config: &PagesConfig, base: &str, model: &str) -> String {
    let path = row.documented_path().replace("{id}", ":id");
    let request = code_block(&format!("Request for {path}"), &request(row, base, model));
    let response = sample::pretty(&config.sample(row));
    let response = code_block(&format!("Response of {path}"), &response);
    format!(
        "</div>\n<div>{request}<details open><summary>Example response</summary>\n{response}</details></div>\n"
    )
}

fn request(row: &Endpoint, base: &str, model: &str) -> String {
    let path: Vec<_> = row
        .segments
        .iter()
        .map(|part| if *part == ":id" { model } else { part })
        .collect();
    let query: Vec<_> = row
        .takes
        .iter()
        .map(|param| format!("{}={}", param.name(), sample::of_param(*param)))
        .collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let url = format!("{base}/{}{mark}{}", path.join("/"), query.join("&"));
    format!("curl -H \"Authorization: Bearer $API_KEY\" \\\n  \"{url}\"")
}

/// The values of a parameter, as HTML.
fn allowed(param: Param) -> String {
    match param.allowed() {
        AllowedValues::Words(words) => words.into_iter().map(code).collect::<Vec<_>>().join(", "),
        AllowedValues::Pattern { expression, .. } => code(expression),
        range @ AllowedValues::Range { .. } => escape(&range.to_string()),
    }
}

/// The table of parameters.
pub fn parameters(config: &PagesConfig) -> String {
    let rows = Param::ALL.map(|param| {
        let of = config
            .endpoints
            .iter()
            .filter(|row| taken(row).any(|taken| taken == param));
        let of: Vec<_> = of
            .map(|row| {
                format!(
                    "<a href=\"#{}\">{}</a>",
                    anchor(row),
                    code(&short_path(row))
                )
            })
            .collect();
        vec![
            code(param.name()),
            allowed(param),
            prose(param.meaning()),
            of.join(", "),
        ]
    });
    stacking_table(
        "Parameters",
        &["Parameter", "Values", "Meaning", "Endpoints"],
        rows,
    )
}

/// The table of the envelope's fields.
pub fn envelope() -> String {
    stacking_table("Fields of the envelope", &FIELD_HEADS, rows("", ENVELOPE))
}

/// The table rows of a field that the mapping lists.
fn listed_rows(listed: &PublishedField) -> Vec<Vec<String>> {
    let words = match &listed.kind {
        PublishedKind::Standard(field) => return rows("", std::slice::from_ref(field)),
        PublishedKind::Number => "number, or <code>null</code>".into(),
        PublishedKind::Text => "string, or <code>null</code>".into(),
        PublishedKind::Constant(value) => format!("always {}", code(value)),
        PublishedKind::Any => "any".into(),
    };
    vec![vec![
        code(&listed.name),
        words,
        "As sent by the data source.".into(),
    ]]
}

/// A row for each field and each nested field.
pub fn rows(path: &str, fields: &[ItemField]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for field in fields {
        let name = if path.is_empty() {
            field.name.to_owned()
        } else {
            format!("{path}.{}", field.name)
        };
        let badge = if field.paid_only {
            " <span class=\"badge\">paid plans</span>"
        } else {
            ""
        };
        rows.push(vec![
            code(&name) + badge,
            type_words(field),
            prose(field.meaning),
        ]);
        match field.shape {
            FieldShape::Object(inner) => rows.extend(self::rows(&name, inner)),
            FieldShape::Objects(inner) => rows.extend(self::rows(&format!("{name}[]"), inner)),
            FieldShape::Text
            | FieldShape::Instant
            | FieldShape::Number
            | FieldShape::Score
            | FieldShape::Integer
            | FieldShape::Flag
            | FieldShape::Words(_)
            | FieldShape::Texts => {}
        }
    }
    rows
}

fn type_words(field: &ItemField) -> String {
    let mut words = match field.shape {
        FieldShape::Text => "string".into(),
        FieldShape::Instant => "string, RFC 3339 in UTC".into(),
        FieldShape::Number => "number".into(),
        FieldShape::Score => format!("number from 0 to 100, or {}", code("unavailable")),
        FieldShape::Integer => "integer".into(),
        FieldShape::Flag => "boolean".into(),
        FieldShape::Words(words) => {
            format!(
                "string: {}",
                words
                    .iter()
                    .copied()
                    .map(code)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        FieldShape::Object(_) => "object".into(),
        FieldShape::Objects(_) => "array of objects".into(),
        FieldShape::Texts => "array of strings".into(),
    };
    words.push_str(match field.presence {
        Presence::Always => "",
        Presence::Nullable => ", or <code>null</code>",
        Presence::IfKnown => "; absent without a value",
        Presence::IfRequested => "; only with certain parameters",
    });
    words
}

/// The table of response headers.
pub fn headers() -> String {
    let rows = HEADERS.iter().map(|header| {
        let on = if header.always {
            header.on.words()
        } else {
            format!("{}, if applicable", header.on.words())
        };
        vec![
            code(header.name),
            prose(&on),
            prose(header.meaning),
            code(header.example),
        ]
    });
    stacking_table(
        "Response headers",
        &["Header", "On", "Meaning", "Example"],
        rows,
    )
}
