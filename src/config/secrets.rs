//! Reads secrets from files, which is how container runtimes and supervisors provide them. Each secret setting has a
//! counterpart whose name ends with `_file`. `secret::setting` reloads the files.

use std::path::Path;

use toml::Value;

use scoregate_base::secret::read_secret_file;

use super::{
    ConfigProblem,
    file::ConfigValues,
    settings::{IN_A_FILE, SETTINGS, ValueKind},
    tables::UPSTREAM_HEADERS,
};

/// Sets each secret from its file. Reports a secret that is given both directly and in a file.
pub fn read_secrets(written: &mut ConfigValues) {
    for secret in SETTINGS
        .iter()
        .filter(|setting| setting.kind == ValueKind::Secret)
    {
        read_secret(written, secret.path).unwrap_or_else(|problem| written.problems.push(problem));
    }
    read_headers(written);
}

/// Replaces the path of each header file with the header that the file contains.
fn read_headers(written: &mut ConfigValues) {
    let ConfigValues {
        values, problems, ..
    } = written;
    let Some(Value::Table(headers)) = values.get_mut(UPSTREAM_HEADERS) else {
        return;
    };
    for (name, value) in headers {
        let Some(file) = header_file(value) else {
            continue;
        };
        match read_secret_file(Path::new(file)) {
            Ok(secret) => *value = Value::String(secret.expose().to_owned()),
            Err(error) => problems.push(ConfigProblem {
                path: format!("{UPSTREAM_HEADERS}.{name}"),
                found: None,
                remedy: error.to_string(),
            }),
        }
    }
}

/// The file that contains the value of a header.
pub fn header_file(value: &Value) -> Option<&str> {
    value
        .as_table()
        .filter(|table| table.len() == 1)?
        .get("file")?
        .as_str()
}

/// Sets the database password from its file, for commands that need no other secret.
pub fn read_database_password(written: &mut ConfigValues) {
    read_secret(written, "store.password").unwrap_or_else(|problem| written.problems.push(problem));
}

fn read_secret(written: &mut ConfigValues, secret: &str) -> Result<(), ConfigProblem> {
    let path = format!("{secret}{IN_A_FILE}");
    let Some(file) = written.values.get(&path).cloned() else {
        return Ok(());
    };
    let problem = |remedy: String| ConfigProblem {
        path: path.clone(),
        found: Some(file.to_string()),
        remedy,
    };
    if written.values.contains_key(secret) {
        return Err(problem(format!("write either this or {secret}, not both")));
    }
    let file_path = file
        .as_str()
        .ok_or_else(|| problem(ValueKind::Path.remedy()))?;
    let read =
        read_secret_file(Path::new(file_path)).map_err(|error| problem(error.to_string()))?;
    written.put(
        secret,
        Value::String(read.expose().to_owned()),
        written.origin(&path),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use crate::config::{UpstreamConfig, read_environment, read_text, resolve};

    use super::*;

    const TOKEN: &str = "sixteen characters and more";

    fn file_with(text: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn written(text: &str) -> ConfigValues {
        read_text(&format!("upstream.url = \"http://localhost:1\"\n{text}")).unwrap()
    }

    fn remedy(text: &str) -> String {
        let mut written = written(text);
        read_secrets(&mut written);
        let problems = resolve(&written).unwrap_err();
        assert!(
            !problems.to_string().contains("sixteen"),
            "a secret was printed: {problems}"
        );
        problems.to_string()
    }

    #[test]
    fn a_secret_is_read_from_its_file_without_the_line_ending() {
        let token = file_with(format!("{TOKEN}\n").as_bytes());
        let credential = file_with(b"of the backend");
        let paths = [
            ("admin.token", &token),
            ("upstream.credential", &credential),
        ];
        let lines =
            paths.map(|(path, file)| format!("{path}_file = \"{}\"\n", file.path().display()));
        let mut written = written(&lines.concat());
        read_secrets(&mut written);
        let config = resolve(&written).unwrap();
        assert_eq!(config.admin_token.unwrap().current().expose(), TOKEN);
        let UpstreamConfig::Http(http) = config.upstream else {
            panic!("{:?}", config.upstream)
        };
        assert_eq!(
            http.credential.unwrap().current().expose(),
            "of the backend"
        );
    }

    #[test]
    fn each_secret_has_a_file_setting() {
        for secret in SETTINGS
            .iter()
            .filter(|setting| setting.kind == ValueKind::Secret)
        {
            let path = format!("{}{IN_A_FILE}", secret.path);
            assert!(
                SETTINGS.iter().any(|setting| setting.path == path),
                "{path}"
            );
        }
    }

    #[test]
    fn an_invalid_secret_file_is_rejected_and_its_content_is_not_printed() {
        assert!(remedy("admin.token_file = \"/nowhere/token\"").contains("cannot be read"));
        assert!(remedy("admin.token_file = 7").contains("write a path"));
        let large = vec![b'x'; 20_000];
        for bad in [
            &b""[..],
            b"\n",
            b"sixteen characters\nin two lines",
            b"sixteen \xff",
            &large,
        ] {
            let file = file_with(bad);
            let message = remedy(&format!("admin.token_file = \"{}\"", file.path().display()));
            assert!(message.contains("the file"), "{message}");
        }
        let open = file_with(TOKEN.as_bytes());
        std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let message = remedy(&format!("admin.token_file = \"{}\"", open.path().display()));
        assert!(message.contains("its mode is 0644"), "{message}");
    }

    #[test]
    fn secret_is_set_once_and_the_environment_overrides_the_file() {
        let token = file_with(TOKEN.as_bytes());
        let by_file = format!("admin.token_file = \"{}\"", token.path().display());
        assert!(
            remedy(&format!(
                "{by_file}\nadmin.token = \"sixteen other characters\""
            ))
            .contains("not both")
        );

        let given = |name: &str, value: &str| {
            read_environment([(name.to_owned(), value.to_owned())].into_iter())
        };
        let mut one = written(&by_file);
        one.overlay(given("SCOREGATE_ADMIN_TOKEN", "from the environment"));
        read_secrets(&mut one);
        assert_eq!(
            resolve(&one)
                .unwrap()
                .admin_token
                .unwrap()
                .current()
                .expose(),
            "from the environment"
        );

        let mut other = written("admin.token = \"from the file itself\"");
        other.overlay(given(
            "SCOREGATE_ADMIN_TOKEN_FILE",
            token.path().to_str().unwrap(),
        ));
        read_secrets(&mut other);
        assert_eq!(
            resolve(&other)
                .unwrap()
                .admin_token
                .unwrap()
                .current()
                .expose(),
            TOKEN
        );
    }
}
