//! Settings that are reloaded while the program runs: which apply immediately, which need a restart, which are rejected,
//! and that no connection is cut.

use scoregate::{
    admin::Reloaded,
    config::{Config, ConfigProblems, read_text, resolve},
};

use crate::{
    program::{Keys, Program, ProgramClient, run},
    world::{World, good},
};

impl World {
    /// The settings of this world, with `text` instead of the initial settings.
    fn settings(&self, text: &str) -> Result<Config, ConfigProblems> {
        let ports = "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\n";
        let state = self.directory.path().display();
        let backend = format!("[upstream]\nurl = \"{}\"\n", self.backend.url());
        let fixed = format!("{ports}data_dir = \"{state}\"\nfreshness.probe = false\n");
        resolve(&read_text(&format!("{fixed}{text}\n{backend}")).unwrap())
    }

    /// Reloads the settings.
    pub async fn reload(&mut self, text: &str) -> Result<Reloaded, ConfigProblems> {
        let wanted = self.settings(text)?;
        self.running.reload(wanted).await
    }
}

const TIERS: &str = "[tiers.free]\nminute = 5\nday = 30\npaid = false\n\
    [tiers.pro]\nminute = 60\nday = 20\npaid = true\n";

#[tokio::test]
async fn changed_tiers_apply_at_once_and_usage_is_kept() {
    let mut world = World::new().await;
    let [free, pro] = [world.customer("free").await, world.customer("pro").await];
    let models = |world: &World, key: &str| world.get("/api/v1/models").key(key);
    for _ in 0..3 {
        assert_eq!(models(&world, &pro.key).send().await.status, 200);
    }
    let mut open = world.connect().await;
    let before = open.send(models(&world, &pro.key)).await;
    assert_eq!(
        (
            before.number("x-ratelimit-limit"),
            before.number("x-ratelimit-remaining")
        ),
        (10_000, 9_996)
    );

    let changed = world.reload(TIERS).await.unwrap();
    assert!(changed.at_next_start.is_empty(), "{changed:?}");
    assert!(
        changed.at_once.contains(&"tiers.pro.day".to_owned()),
        "{changed:?}"
    );
    let after = open.send(models(&world, &pro.key)).await;
    assert_eq!(
        (
            after.number("x-ratelimit-limit"),
            after.number("x-ratelimit-remaining")
        ),
        (20, 15)
    );
    for _ in 0..5 {
        assert_eq!(
            models(&world, &free.key).send().await.status,
            200,
            "five a minute now"
        );
    }
    assert_eq!(
        models(&world, &free.key).send().await.code(),
        "rate_limit_exceeded"
    );
    assert!(
        world.customer("pro").await.key != pro.key,
        "new applications have the new tiers too"
    );
    assert_eq!(
        world
            .counted("scoregate_tier_requests_total{tier=\"pro\",class=\"2xx\"}")
            .await,
        5
    );
}

#[tokio::test]
async fn a_tier_in_use_cannot_be_removed() {
    let mut world = World::new().await;
    let teams = world.customer("teams").await;
    let refused = world.reload(TIERS).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("tiers: ") && refused.contains("teams"),
        "{refused}"
    );
    assert_eq!(world.counted("scoregate_config_rejected").await, 1);
    let output = world.get_as(&teams, "/api/v1/models").await;
    assert_eq!(
        (output.status, output.number("x-ratelimit-limit")),
        (200, 100_000)
    );
    world
        .running
        .registrar
        .set_tier("test", teams.id, "pro")
        .await
        .unwrap();
    world.reload(TIERS).await.unwrap();
    assert_eq!(world.counted("scoregate_config_rejected").await, 0);
    assert_eq!(
        world
            .get_as(&teams, "/api/v1/models")
            .await
            .number("x-ratelimit-limit"),
        20
    );
}

#[tokio::test]
async fn guard_pages_and_proxies_are_reloaded_and_settings_that_need_a_restart_are_listed() {
    let mut world = World::with("guard.per_minute = 2", good).await;
    for code in ["api_key_required", "api_key_required", "too_many_refusals"] {
        assert_eq!(world.get("/api/v1/models").send().await.code(), code);
    }
    let changed = world
        .reload(
            "guard.per_minute = 100\nservice.name = \"elsewhere\"\ncache.max_bytes = \"1MiB\"\nproxies.trusted = [\"127.0.0.1\"]",
        )
        .await
        .unwrap();
    assert_eq!(
        changed.at_once,
        ["guard.per_minute", "proxies.trusted", "service.name"]
    );
    assert_eq!(changed.at_next_start, ["cache.max_bytes"]);
    let output = world
        .get("/api/v1/models")
        .header("X-Forwarded-For", "192.0.2.9")
        .send()
        .await;
    assert_eq!(
        (
            output.status,
            output.number("x-ratelimit-limit"),
            output.number("x-ratelimit-remaining")
        ),
        (401, 100, 99)
    );
    assert_eq!(
        output.header("www-authenticate"),
        "Bearer realm=\"elsewhere\""
    );
    let docs = String::from_utf8(world.get("/docs").send().await.body).unwrap();
    assert!(docs.contains("elsewhere"));
}

#[test]
fn the_command_and_the_signal_reload_the_file_and_an_invalid_one_changes_nothing() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("scoregate.toml");
    let data_dir = directory.path().join("data");
    let settings = |more: &str| {
        let ports =
            "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\nupstream = \"built-in\"\n";
        std::fs::write(
            &file,
            format!("{ports}data_dir = \"{}\"\n{more}", data_dir.display()),
        )
        .unwrap();
    };
    settings("");
    let program = Program::start(&["serve", "--config", file.to_str().unwrap()], &[]);
    let address = program.public();
    let (_, key) = Keys(&data_dir).create("pro");
    let limit = || {
        let request = async {
            ProgramClient::to(address)
                .await
                .get("/api/v1/models", &key)
                .send()
                .await
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(request).number("x-ratelimit-limit")
    };
    let reload = || run(&["reload", "--data-dir", data_dir.to_str().unwrap()]);
    assert_eq!(limit(), 10_000);
    assert_eq!(
        reload().with(0).out,
        "no setting changed; certificates reloaded\n"
    );
    // The test waits for each line, so that it does not mistake an earlier line for a later one.
    program.logs("settings reloaded");

    settings("server.workers = 3\n[tiers.pro]\nminute = 60\nday = 77\npaid = true\n");
    let output = reload().with(0).out;
    assert!(
        output.contains("in effect now: tiers.pro.day, ")
            && output.contains("after a restart: server.workers"),
        "{output}"
    );
    program.logs("settings reloaded");
    assert_eq!(limit(), 77);

    settings(
        "server.worker = 3\nlog.format = \"xml\"\n[tiers.pro]\nminute = 60\nday = -1\npaid = true\n",
    );
    let refused = reload().with(1).err;
    for words in [
        "server.worker: there is no such setting",
        "did you mean `server.workers`",
        "log.format",
        "tiers.pro.day: found -1",
    ] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert_eq!(limit(), 77);
    std::fs::remove_file(&file).unwrap();
    assert!(reload().with(1).err.contains("cannot be read"));

    settings("[tiers.pro]\nminute = 60\nday = 88\npaid = true\n");
    program.signal("HUP");
    program.logs("settings reloaded");
    assert_eq!(limit(), 88);
    settings("listen");
    program.signal("HUP");
    program.logs("not valid TOML");
    assert_eq!(limit(), 88);
    assert_eq!(program.stop().code, Some(0));
    assert!(reload().with(1).err.contains("no server is running"));
}
