//! A site moves from one machine to a database and back, with its commands.

use super::*;

/// The settings of a single gateway with a store file.
const FILE: [(&str, &str); 1] = [("SCOREGATE_UPSTREAM", "built-in")];

#[test]
fn a_site_moves_to_a_database_and_back_with_keys_and_units_used_today() {
    needs!("postgresql");
    within_one_day(|| {
        let single = TempDir::new().unwrap();
        let directory = single.path().to_str().unwrap();
        let program = Program::serve(single.path(), &FILE);
        let public = program.public();
        let (_, key) = Keys(single.path()).create("free");
        assert_eq!(
            Wire::open(public)
                .unwrap()
                .get(TARGET, &key)
                .status_and_code()
                .0,
            200
        );
        let file = single.path().join("export.jsonl");
        let file = file.to_str().unwrap();
        let close = ["store", "export", file, "--close", "--data-dir", directory];
        let running = run_with(&close, &FILE).with(1).err;
        assert!(running.contains("in use"), "{running}");
        program.stop().with(0);
        let closed = run_with(&close, &FILE).with(0).err;
        assert!(
            closed.contains("exported: applications 1, audit 1, keys 1,")
                && closed.contains("closed-"),
            "{closed}"
        );
        let refused = Program::serve(single.path(), &FILE).end().0.err;
        assert!(
            refused.contains("It was exported and closed") && !refused.contains("store import"),
            "{refused}"
        );

        let site = Site::new();
        let imported = run_with(&["store", "import", file], &site.environment())
            .with(0)
            .err;
        assert!(
            imported.contains("imported: applications 1, audit 1, keys 1,"),
            "{imported}"
        );
        let again = run_with(&["store", "import", file], &site.environment())
            .with(1)
            .err;
        assert!(again.contains("holds 1 applications"), "{again}");
        let gateway = site.gateway();
        let remaining = |gateway: &SiteGateway| {
            let reply = Wire::open(gateway.public).unwrap().get("/api/v1/me", &key);
            let Reply::Response { body, .. } = reply else {
                panic!("{reply:?}")
            };
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            body["data"][0]["limits"][1]["remaining"]
                .as_u64()
                .unwrap_or_else(|| panic!("{body}"))
        };
        assert_eq!(remaining(&gateway), 9);
        gateway.reaches(&key, 200);

        // Export while the gateway is running: from then on it finds no tables.
        let back = gateway.data_dir.path().join("back.jsonl");
        let back = back.to_str().unwrap();
        let exported = run_with(&["store", "export", back, "--close"], &site.environment())
            .with(0)
            .err;
        assert!(
            exported.contains("the tables are now in the schema"),
            "{exported}"
        );
        let checked = run_with(&["store", "check"], &site.environment())
            .with(2)
            .err;
        assert!(checked.contains("it has no tables"), "{checked}");
        gateway.program.stop();

        run_with(&["store", "import", back, "--data-dir", directory], &FILE).with(0);
        let shown = run_with(&["keys", "list", "--json", "--data-dir", directory], &FILE)
            .with(0)
            .out;
        assert!(shown.contains("granted_today"), "{shown}");
    });
}
