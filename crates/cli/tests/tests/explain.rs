//! `plan explain`.

use expect_test::expect;

use crate::binary::{anabranch, scratch};

#[test]
fn as_text() {
    expect![[r#"
        plan feed: 17 nodes in 12 stages
        answer: the rows of page
        trips to sources: at most 6, at most 3 of them one after the other
        computing: in place when expected to take at most 50 µs, else on the CPU pool
        deadline: 150 ms, unless the request brings one

        nodes
          viewer         core::viewer
              unasked   country string
          followed       core::follow         <- viewer
              timeout   40ms
              fallback  stale up to 600s, else empty
              reads     feed: LRANGE follow:{id} 0 19
              unasked   country string
          posts          core::media          <- followed
              timeout   40ms
              fallback  stale up to 600s, else empty
              reads     feed: LRANGE media:{id} 0 3
          details        core::lookup         <- posts
              timeout   40ms
              fallback  stale up to 600s, else default age_hours 24
              reads     feed: HMGET post:{id} likes age_hours author topic title (shared with equal reads)
              adds      likes int, age_hours float, author int, topic string, title string
          loved          core::vm             <- details
              says      out_key: popularity, expr_id: log(1 + coalesce(likes, 0))
              adds      popularity float
          score          core::vm             <- loved
              says      out_key: score, expr_id: 1 + (popularity - $freshness * coalesce(age_hours, 100))
              adds      score float
          suggested      core::recommendation <- viewer
              reads     feed: LRANGE recommendation:{id} 0 9
              unasked   country string
          more_posts     core::media          <- suggested
              reads     feed: LRANGE media:{id} 0 1
          more_details   core::lookup         <- more_posts
              reads     feed: HMGET post:{id} likes age_hours author topic title (shared with equal reads)
              adds      likes int, age_hours float, author int, topic string, title string
          also_loved     core::vm             <- more_details
              says      out_key: popularity, expr_id: log(1 + coalesce(likes, 0))
              adds      popularity float
          also_score     core::vm             <- also_loved
              says      out_key: score, expr_id: popularity - $freshness * coalesce(age_hours, 100)
              adds      score float
          suggestions    core::timeout        <- also_score
              timeout   90ms
              fallback  empty
          all            core::union          <- score, suggestions
          wanted         core::filter         <- all
              says      pred_id: age_hours < 60 and not regex(topic, $muted, "i")
          ranked         core::sort           <- wanted
              says      by: score, order: desc
          diverse        core::group_limit    <- ranked
              says      by: author, count: 2
              rows      only the first 10 are asked for
          page           core::take           <- diverse
              says      count: 10
              columns   likes int, age_hours float, author int, score float, popularity float, topic string,
                        title string

        stages by level; those of one level may run side by side
          1  wait     viewer (viewer)
          2  wait     followed (follow)  1 trip
             wait     suggested (recommendation)  1 trip
             timer    time of suggestions
          3  wait     posts (media)  1 trip
             wait     more_posts (media)  1 trip
          4  wait     details (lookup)  1 trip
             wait     more_details (lookup)  1 trip
          5  compute  loved > score (vm > vm)
             compute  also_loved > also_score (vm > vm)
          6  compute  suggestions (timeout)
          7  compute  all > … > page (5 nodes)

        longest way, 3 trips: followed (follow) -> posts (media) -> details (lookup)
        exit 0
    "#]]
    .assert_eq(&anabranch(&["plan", "explain", "feed"], "").shown());
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
              unasked   country string
          followed       core::follow         <- viewer
              reads     feed: LRANGE follow:{id} 0 4
              unasked   country string
          suggested      core::recommendation <- viewer
              timeout   40ms
              fallback  empty
              reads     feed: LRANGE recommendation:{id} 0 4
              unasked   country string
          both           core::union          <- followed, suggested
          people         core::if             <- followed, both
              says      pred_id: $explore == true
          posts          core::media          <- people
              reads     feed: LRANGE media:{id} 0 1
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

        longest way, 2 trips: followed (follow) -> posts (media)
        exit 0
    "#]]
    .assert_eq(&anabranch(&["plan", "explain", "home", "--inline-threshold", "0"], "").shown());
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
