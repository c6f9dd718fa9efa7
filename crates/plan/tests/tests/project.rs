//! `anabranch.toml`.

use std::path::Path;

use anabranch_plan::Project;
use expect_test::{Expect, expect};

fn check(text: &str, expect: Expect) {
    let secret = |name: &str| (name == "PASSWORD").then(|| "s3cret".to_owned());
    let shown = match Project::parse_with(text, Path::new("/home/p/anabranch.toml"), &secret) {
        // Settings of the server have tests of their own.
        Ok(project) => {
            format!("{project:#?}").replace("    serve: ServeSettings {\n        values: {},\n    },\n", "")
        }
        Err(problems) => problems.to_string(),
    };
    expect.assert_eq(&shown);
}

#[test]
fn defaults() {
    check(
        "",
        expect![[r#"
            Project {
                file: "/home/p/anabranch.toml",
                registry: "/home/p/registry",
                plans: "/home/p/plans",
                env: None,
                endpoints: [],
                admission: true,
                bounds: BoundsSettings {
                    rows: None,
                    bytes: None,
                },
                files: [],
                test_ops: false,
                engine: EngineSettings {
                    cpu_threads: None,
                    inline_threshold: None,
                },
                captures: None,
            }"#]],
    );
}

#[test]
fn places_and_threads() {
    check(
        r#"
        [plan]
        registry = "../registry"
        plans = "/plans"
        env = "prod"
        admission = false
        [engine]
        cpu_threads = 4
        inline_threshold_us = 30
        "#,
        expect![[r#"
            Project {
                file: "/home/p/anabranch.toml",
                registry: "/home/p/../registry",
                plans: "/plans",
                env: Some(
                    "prod",
                ),
                endpoints: [],
                admission: false,
                bounds: BoundsSettings {
                    rows: None,
                    bytes: None,
                },
                files: [],
                test_ops: false,
                engine: EngineSettings {
                    cpu_threads: Some(
                        4,
                    ),
                    inline_threshold: Some(
                        30µs,
                    ),
                },
                captures: None,
            }"#]],
    );
}

#[test]
fn redis_settings() {
    check(
        r#"
        [plan.endpoints.ep_0001]
        source = "redis"
        url = "rediss://me:${PASSWORD}@cache:6380/2"
        cluster = true
        connections = 4
        pipeline = 500
        max_inflight = 32
        connect_timeout_ms = 50
        request_timeout_ms = 20
        hedge = { percentile = 75, budget = 0.1 }
        "#,
        expect![[r#"
            Project {
                file: "/home/p/anabranch.toml",
                registry: "/home/p/registry",
                plans: "/home/p/plans",
                env: None,
                endpoints: [
                    EndpointSettings {
                        endpoint: "ep_0001",
                        source: Redis {
                            url: Some(
                                rediss://cache:6380/2,
                            ),
                            cluster: true,
                            connections: Some(
                                4,
                            ),
                            pipeline: Some(
                                500,
                            ),
                            authorities: None,
                        },
                        max_inflight: Some(
                            32,
                        ),
                        connect_timeout: Some(
                            50ms,
                        ),
                        request_timeout: Some(
                            20ms,
                        ),
                        hedge: Some(
                            Hedge {
                                percentile: 75.0,
                                factor: 2.0,
                                budget: 0.1,
                            },
                        ),
                        strict_values: false,
                    },
                ],
                admission: true,
                bounds: BoundsSettings {
                    rows: None,
                    bytes: None,
                },
                files: [],
                test_ops: false,
                engine: EngineSettings {
                    cpu_threads: None,
                    inline_threshold: None,
                },
                captures: None,
            }"#]],
    );
}

#[test]
fn memory_settings() {
    check(
        r#"
        [plan.endpoints.items]
        source = "memory"
        data = ["data.json", { pattern = "item:{id}", file = "items.csv" }]
        delay_ms = 5
        faults = [{ prefix = "follow:", delay_ms = 20, fail_every = 3 }]
        "#,
        expect![[r#"
            Project {
                file: "/home/p/anabranch.toml",
                registry: "/home/p/registry",
                plans: "/home/p/plans",
                env: None,
                endpoints: [
                    EndpointSettings {
                        endpoint: "items",
                        source: Memory {
                            data: [
                                DataFile {
                                    file: "/home/p/data.json",
                                    pattern: None,
                                },
                                DataFile {
                                    file: "/home/p/items.csv",
                                    pattern: Some(
                                        "item:{id}",
                                    ),
                                },
                            ],
                            faults: [
                                FaultSettings {
                                    prefix: "follow:",
                                    delay: 20ms,
                                    fail_every: 3,
                                    stall_after: None,
                                },
                                FaultSettings {
                                    prefix: "",
                                    delay: 5ms,
                                    fail_every: 0,
                                    stall_after: None,
                                },
                            ],
                        },
                        max_inflight: None,
                        connect_timeout: None,
                        request_timeout: None,
                        hedge: None,
                        strict_values: false,
                    },
                ],
                admission: true,
                bounds: BoundsSettings {
                    rows: None,
                    bytes: None,
                },
                files: [],
                test_ops: false,
                engine: EngineSettings {
                    cpu_threads: None,
                    inline_threshold: None,
                },
                captures: None,
            }"#]],
    );
}

#[test]
fn http_settings() {
    check(
        "[plan.endpoints.api]\nsource = 'http'\nurl = 'https://api'",
        expect![[r#"
            Project {
                file: "/home/p/anabranch.toml",
                registry: "/home/p/registry",
                plans: "/home/p/plans",
                env: None,
                endpoints: [
                    EndpointSettings {
                        endpoint: "api",
                        source: Http {
                            url: Some(
                                https://api,
                            ),
                        },
                        max_inflight: None,
                        connect_timeout: None,
                        request_timeout: None,
                        hedge: None,
                        strict_values: false,
                    },
                ],
                admission: true,
                bounds: BoundsSettings {
                    rows: None,
                    bytes: None,
                },
                files: [],
                test_ops: false,
                engine: EngineSettings {
                    cpu_threads: None,
                    inline_threshold: None,
                },
                captures: None,
            }"#]],
    );
}

#[test]
fn all_wrong_settings_at_once() {
    check(
        r#"
        [plans]
        [plan]
        registri = 3
        plans = 4
        [plan.endpoints]
        plain = 3
        a = { source = "mysql", url = "x" }
        b = { source = "redis", url = "redis://${NOBODY}", data = [], connections = 0 }
        c = { source = "redis", url = "http://u:p@x" }
        d = { source = "http", url = "http://${x" }
        e = { source = "memory", data = [3, { file = "x", patern = "y" }], faults = [{ delay_ms = 1 }, 4], url = "x" }
        f = { url = "x" }
        g = { source = "http", hedge = "yes" }
        h = { source = "http", hedge = { percentile = 100, budgt = 0.1 } }
        i = { source = "http", hedge = { budget = 2 } }
        j = { source = "http", hedge = { factor = "2" } }
        [engine]
        cpu_threads = -1
        threads = 3
        "#,
        expect![[r#"
            /home/p/anabranch.toml:2:10: plans: there is no such field (did you mean `plan`?)
            /home/p/anabranch.toml:5:9: plan, plans: must be a string, not 4
            /home/p/anabranch.toml:4:9: plan, registri: there is no such field (did you mean `registry`?)
            /home/p/anabranch.toml:8:15: plan.endpoints.a, source: must be one of `memory`, `redis`, `http`, not `mysql`
            /home/p/anabranch.toml:9:33: plan.endpoints.b, url: the environment variable `NOBODY` is not set
            /home/p/anabranch.toml:9:71: plan.endpoints.b, connections: must be at least 1 (leave it out for the default)
            /home/p/anabranch.toml:9:60: plan.endpoints.b, data: there is no such field
            /home/p/anabranch.toml:10:33: plan.endpoints.c, url: must start with redis://, rediss://, redis-cluster://, rediss-cluster://
            /home/p/anabranch.toml:11:32: plan.endpoints.d, url: has a `${` without its `}`
            /home/p/anabranch.toml:12:34: plan.endpoints.e, data: must be files (`FILE` or `FILE=PATTERN`) or tables { file, pattern }, not 3
            /home/p/anabranch.toml:12:34: plan.endpoints.e, data, patern: there is no such field (did you mean `pattern`?)
            /home/p/anabranch.toml:12:76: plan.endpoints.e, faults, prefix: is missing; it must be a string
            /home/p/anabranch.toml:12:76: plan.endpoints.e, faults: must be tables, not 4
            /home/p/anabranch.toml:12:108: plan.endpoints.e, url: there is no such field
            /home/p/anabranch.toml:13:9: plan.endpoints.f, source: is missing; it must be a string
            /home/p/anabranch.toml:14:32: plan.endpoints.g, hedge: must be true, false or { percentile, factor, budget }, not the string `yes`
            /home/p/anabranch.toml:15:32: plan.endpoints.h, hedge: the percentile must be from 1 to 99.9, not 100
            /home/p/anabranch.toml:15:60: plan.endpoints.h, hedge, budgt: there is no such field (did you mean `budget`?)
            /home/p/anabranch.toml:16:32: plan.endpoints.i, hedge: the budget must be from 0.0001 to 1, not 2
            /home/p/anabranch.toml:17:42: plan.endpoints.j, hedge, factor: must be a number, not the string `2`
            /home/p/anabranch.toml:7:9: plan.endpoints.plain: must be a table, not 3
            /home/p/anabranch.toml:19:9: engine, cpu_threads: must be a whole number from 0 to 4294967295, not -1
            /home/p/anabranch.toml:20:9: engine, threads: there is no such field"#]],
    );
    check("[plan\n", expect!["/home/p/anabranch.toml:1:6: unclosed table, expected `]`"]);
}

#[test]
fn a_secret_is_used_but_not_shown() {
    let text = "[plan.endpoints.e]\nsource = 'redis'\nurl = 'redis://me:${PASSWORD}@host'";
    let secret = |_: &str| Some("s3cret".to_owned());
    let project = Project::parse_with(text, Path::new("anabranch.toml"), &secret).unwrap();
    assert!(!format!("{project:?}").contains("s3cret"));
    let settings = project.endpoint("ep_0001", "e").unwrap();
    let anabranch_plan::project::SourceSettings::Redis { url: Some(url), .. } = &settings.source else {
        panic!("{settings:?}")
    };
    assert_eq!(url.as_str(), "redis://me:s3cret@host");
}

#[test]
fn found_from_below() {
    let folder = std::env::temp_dir().join(format!("anabranch-project-{}", std::process::id()));
    let below = folder.join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(folder.join("anabranch.toml"), "[plan]\nplans = 'p'").unwrap();
    let found = Project::find(&below);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found.unwrap().unwrap().plans, folder.join("p"));
}

#[test]
fn captures() {
    check(
        r#"
        [plan.captures]
        store = "captures"
        one_in = 100
        per_second = 5
        masked_keys = ["country"]
        masked_params = ["query"]
        "#,
        expect![[r#"
            Project {
                file: "/home/p/anabranch.toml",
                registry: "/home/p/registry",
                plans: "/home/p/plans",
                env: None,
                endpoints: [],
                admission: true,
                bounds: BoundsSettings {
                    rows: None,
                    bytes: None,
                },
                files: [],
                test_ops: false,
                engine: EngineSettings {
                    cpu_threads: None,
                    inline_threshold: None,
                },
                captures: Some(
                    CaptureSettings {
                        store: "/home/p/captures",
                        set: "live",
                        one_in: Some(
                            100,
                        ),
                        per_second: Some(
                            5,
                        ),
                        most_bytes: None,
                        total_bytes: None,
                        most_waiting: None,
                        masked_keys: [
                            "country",
                        ],
                        masked_params: [
                            "query",
                        ],
                    },
                ),
            }"#]],
    );
}

#[test]
fn captures_that_are_wrong() {
    check(
        r#"
        [plan.captures]
        one_in = 0
        per_second = "many"
        masked_keys = [3]
        sets = "live"
        "#,
        expect![[r#"
            /home/p/anabranch.toml:2:15: plan.captures, store: is missing; it must be a string
            /home/p/anabranch.toml:3:9: plan.captures, one_in: must be at least 1 (leave it out for the default)
            /home/p/anabranch.toml:4:9: plan.captures, per_second: must be a whole number, not the string `many`
            /home/p/anabranch.toml:5:9: plan.captures, masked_keys: must be names, not 3
            /home/p/anabranch.toml:6:9: plan.captures, sets: there is no such field (did you mean `set`?)"#]],
    );
    check(
        "[plan.captures]\nstore = 'captures'\nper_second = 5000000000\nmost_bytes = 5000000000",
        expect![[r#"
            /home/p/anabranch.toml:3:1: plan.captures, per_second: must be from 1 to 4294967295, not 5000000000 (leave it out for the default)
            /home/p/anabranch.toml:4:1: plan.captures, most_bytes: must be from 1 to 4294967295, not 5000000000 (leave it out for the default)"#]],
    );
}
