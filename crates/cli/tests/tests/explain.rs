//! `plan explain`.

use expect_test::{expect, expect_file};

use crate::binary::{anabranch, examples, in_folder, scratch};

#[test]
fn as_text() {
    expect_file!["explain_feed.txt"]
        .assert_eq(&in_folder(&examples(), &["plan", "explain", "feed"], "").shown());
}

#[test]
fn gates_are_shown() {
    expect![[r#"
        plan home: 7 nodes in 8 stages
        answer: the rows of page
        trips to sources: at most 3, at most 2 of them one after the other
        computing: always on the CPU pool

        nodes
          viewer         core::viewer
              unread    country string
          followed       core::follow         <- viewer
              reads     redis_default: LRANGE follow:{id} 0 4
              unread    country string
          suggested      core::recommendation <- viewer
              timeout   40ms
              fallback  empty
              reads     redis_default: LRANGE recommendation:{id} 0 4
              unread    country string
          both           core::union          <- followed, suggested
          people         core::if             <- followed, both
              says      pred_id: $explore == true
          posts          core::media          <- people
              reads     redis_default: LRANGE media:{id} 0 1
              rows      only the first 12 are asked for
          page           core::take           <- posts
              says      count: 12

        stages by level; those of one level may run side by side
          1  wait     viewer (viewer)
             gate     then of people
          2  wait     followed (follow)  1 trip
             wait     suggested (recommendation)  1 trip
          3  compute  both (union)
          4  compute  people (if)
          5  wait     posts (media)  1 trip
          6  compute  page (take)

        longest path, 2 trips: followed (follow) -> posts (media)
        exit 0
    "#]]
    .assert_eq(&in_folder(&examples(), &["plan", "explain", "home", "--inline-threshold", "0"], "").shown());
}

#[test]
fn lines_fit_a_terminal() {
    for plan in ["feed", "trending", "new_faces", "home"] {
        let said = anabranch(&["plan", "explain", plan], "");
        let longest = said.stdout.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 100, "{longest}");
    }
}

#[test]
fn as_a_picture_that_is_the_same_each_time() {
    let folder = scratch("picture");
    let picture = |name: &str| {
        let file = folder.join(name);
        let said = anabranch(&["plan", "explain", "feed", "--svg", file.to_str().unwrap()], "");
        assert_eq!(said.code, 0, "{}", said.shown());
        std::fs::read_to_string(file).unwrap()
    };
    let svg = picture("one.svg");
    assert_eq!(svg, picture("two.svg"));
    assert_eq!(svg.matches("<g>").count(), 12, "a box a stage");
    assert!(svg.contains("HMGET post:{id} likes age"));
    assert!(svg.starts_with("<svg xmlns") && svg.ends_with("</svg>\n"));
}

#[test]
fn as_json() {
    let said = anabranch(&["plan", "explain", "feed", "--json"], "");
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(json["trips"], 6);
    assert_eq!(json["critical_trips"], 3);
    let reads: Vec<&str> = json["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|node| node["reads"].as_array().unwrap())
        .map(|read| read["command"].as_str().unwrap())
        .collect();
    expect![[r#"
        LRANGE follow:{id} 0 19
        LRANGE media:{id} 0 3
        HMGET post:{id} likes age_hours author topic title
        LRANGE recommendation:{id} 0 9
        LRANGE media:{id} 0 1
        HMGET post:{id} likes age_hours author topic title"#]]
    .assert_eq(&reads.join("\n"));
}

/// A shape whose class has no rule is black.
#[test]
fn every_part_of_the_picture_has_a_style() {
    let folder = scratch("explain_style");
    for plan in ["feed", "home"] {
        let file = folder.join(format!("{plan}.svg"));
        let said = anabranch(&["plan", "explain", plan, "--svg", file.to_str().unwrap()], "");
        assert_eq!(said.code, 0, "{}", said.shown());
        let svg = std::fs::read_to_string(&file).unwrap();
        let style = svg.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        for classes in svg.split(" class=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            for class in classes.split_whitespace() {
                assert!(style.contains(&format!(".{class}")), "{plan}: .{class} has no rule");
            }
        }
        assert!(style.contains("prefers-color-scheme:dark"), "{plan}");
    }
    let feed = std::fs::read_to_string(folder.join("feed.svg")).unwrap();
    for part in ["timeout: ", "fallback: ", "out_key: score", "watches the time"] {
        assert!(feed.contains(part), "{part} is in the picture");
    }
}
